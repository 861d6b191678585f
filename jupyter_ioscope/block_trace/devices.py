"""Names of block devices."""

from __future__ import annotations

import os


def device_name(number: str, sys_root: str = "/sys") -> str:
    """The kernel's name of a device ("vda") by its number in a trace ("254,0"); "254:0" where it
    has none."""
    number = number.replace(",", ":")
    try:
        return os.path.basename(os.readlink(f"{sys_root}/dev/block/{number}")) or number
    except OSError:
        return number
