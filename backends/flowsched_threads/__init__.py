"""The threads backend: every replica is a thread of this process and data moves by reference."""

from flowsched_threads.backend import ThreadsBackend

__all__ = ["ThreadsBackend"]
