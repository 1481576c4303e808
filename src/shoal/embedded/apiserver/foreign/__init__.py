"""Kinds that other projects own and people's manifests name: stored here with the shape those projects publish."""
