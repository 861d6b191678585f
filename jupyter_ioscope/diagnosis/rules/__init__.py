"""Judgements, one file each with the constant RULE: the folder is the list."""
