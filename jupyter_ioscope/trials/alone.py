"""One comparison or search at a time: two at once would measure each other."""

from __future__ import annotations

import threading

ALONE = threading.Lock()
