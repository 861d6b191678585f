"""`python -m jupyter_ioscope`."""

from __future__ import annotations

import sys

from jupyter_ioscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
