"""How often the diagnosis is right, on real loaders whose trouble is known: `make accuracy`."""
