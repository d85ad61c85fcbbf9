"""The torch backend: every replica is served by a rank and data moves by torch.distributed, point to point."""
