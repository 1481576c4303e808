"""Pods that nobody else would end: on nodes that are gone, never bound, or finished and too many."""
