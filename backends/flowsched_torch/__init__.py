"""The torch backend: ranks of torch.distributed run their own program of the plan, and data goes between them."""

from flowsched_torch.backend import TorchBackend

__all__ = ["TorchBackend"]
