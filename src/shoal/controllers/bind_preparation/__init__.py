"""Writes what a pod needs before it is bound: allocations of claims and volumes, and the names of its devices.

Shared by all who place pods. Every write can be repeated: a successor of a killed scheduler finds the choice in the
objects and goes on from there.
"""
