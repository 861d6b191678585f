"""Benches on the user's own data: one file a bench, with the constant `BENCH`."""
