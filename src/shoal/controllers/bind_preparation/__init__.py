"""Writes what a pod needs before it is bound: allocations of claims and volumes, and the names of its devices.

All schedulers share it. Every write can be repeated: after a crash, the next process finds the choice in the objects
and continues from there.
"""
