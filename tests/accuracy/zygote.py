"""A process with the libraries loaded that forks one child for each loader of this package.

Importing them takes longer than most loaders run; a kernel has them loaded as well when its cell
begins. Reads one JSON line for each run (arguments and environment), answers with the child's
process number and then with its exit status; the child is in a session of its own.
"""

from __future__ import annotations

import json
import os
import sys
import traceback

from tests.accuracy import one


def main() -> int:
    import datasets  # noqa: F401
    import h5py  # noqa: F401
    import numpy  # noqa: F401
    import pandas  # noqa: F401
    import PIL.Image  # noqa: F401
    import torch.utils.data  # noqa: F401

    import jupyter_ioscope  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return run(request["arguments"], request["errors"])
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return 0


def run(arguments: list[str], errors: str) -> int:
    """One run, in the child. What it writes to stderr goes into the file `errors`."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    try:
        return one.main(arguments)
    except BaseException:
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(main())
