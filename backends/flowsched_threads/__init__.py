"""The threads backend: every replica is a thread of this process."""
