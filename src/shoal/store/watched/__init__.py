"""Converts the objects of a live cluster to the engine's events as they change, with the rules that also read
manifests.
"""
