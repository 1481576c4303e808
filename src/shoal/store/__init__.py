"""Manifests and the objects of a live cluster, as the events and values that the engine takes."""
