"""Repeatable causes of slow I/O: a slow mount, a slow server, a throttled device, a cold cache.

Each says with `why_not()` what it lacks on this machine; empty means that it works here.
"""
