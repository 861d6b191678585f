"""Frozen values: what was recorded, what was concluded, what was compared, and their file format.

Standard library only. Everything before a `Profile` records it; everything after it only reads it.
"""
