"""A living cluster as the engine's events: the same reading as of a set of manifests, kept up as objects change."""
