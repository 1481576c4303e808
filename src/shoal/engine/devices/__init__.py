"""Stores the devices of nodes, and decides whether and where device requests fit.

Every kind of ask ends as the same thing, a `Grant`: subtractions from integer planes of single devices. A new kind
(memory share, replica, MIG tile) adds a demand, perhaps a plane, and one entry in `kinds.KINDS`.
"""
