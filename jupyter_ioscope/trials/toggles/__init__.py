"""toggles."""
