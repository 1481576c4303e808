"""Borders to the world's state: today files of manifests, turned into the events that the engine takes."""
