"""A cluster at a glance, for terminals: who holds which GPU, what waits and why, what just happened."""
