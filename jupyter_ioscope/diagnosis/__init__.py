"""Reads a Profile and says where the time went, what holds the loop back, and how sure that is."""
