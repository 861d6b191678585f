"""Requests to block devices as the kernel traces them: when each was issued and completed.

Needs a readable and writable tracefs, which is root's unless somebody gave rights away. Nothing is
mounted here, and only a private trace instance is used: other traces of the machine go on as they
were.
"""
