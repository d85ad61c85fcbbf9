"""The Ray backend: every replica is an actor and data goes from actor to actor."""
