"""Loader libraries: one file each, constant LOADER."""
