"""benches."""
