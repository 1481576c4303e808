"""What a decision writes before its pod is bound: claims of devices and of volumes, and the names of devices.

Shared by all who place pods. Every write can be repeated: a successor of a killed scheduler finds the choice in the
objects and goes on from there.
"""
