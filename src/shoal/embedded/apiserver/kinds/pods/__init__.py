"""Pods: what is filled in, what is refused, how they are bound, evicted, resized and looked into."""
