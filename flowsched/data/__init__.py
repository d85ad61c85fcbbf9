"""Loaders that give each process its own samples, exactly, whatever launches the processes."""
