"""A web server on this machine that answers late: an object store without a network."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.io_causes.orphan import detach, orphan, ready, when_let_go


@contextlib.contextmanager
def slow_server(delay_s: float, size_bytes: int = 1024) -> Iterator[tuple[str, int]]:
    """(host, port) of a server that answers every GET after `delay_s` with `size_bytes` bytes."""
    words = [repr(delay_s), str(size_bytes)]
    with orphan("tests.io_causes.slow_server", *words) as port:
        yield "127.0.0.1", int(port)


def serve(pipe: int, delay_s: float, size_bytes: int) -> None:
    """Answer until nobody holds the pipe."""
    content = bytes(size_bytes)

    class Late(BaseHTTPRequestHandler):
        protocol_version = (
            "HTTP/1.1"  # connections stay open, as clients of object stores keep them
        )
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            time.sleep(delay_s)
            self.send_response(200)
            self.send_header("Content-Length", str(size_bytes))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Late)
    server.daemon_threads = True
    when_let_go(pipe, lambda: threading.Thread(target=server.shutdown).start())
    ready(str(server.server_address[1]))
    server.serve_forever(poll_interval=0.2)


if __name__ == "__main__":
    detach()
    serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
