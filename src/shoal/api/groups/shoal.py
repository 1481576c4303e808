"""Shoal's own annotation for the pods of a group, beside those of the other projects."""

RENDEZVOUS = "shoal.dev/rendezvous"
"""`true` on pods: they get each other's addresses when they start, and wait for each other."""
