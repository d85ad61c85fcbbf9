"""The Ray backend: every replica is an actor and data goes from actor to actor."""

from flowsched_ray.backend import RayBackend

__all__ = ["RayBackend"]
