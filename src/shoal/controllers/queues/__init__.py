"""Kueue's decisions in a living cluster: who is admitted, who has to stop, and what is told about it."""
