"""Decides which pods run on which nodes and devices, and explains why others wait. Pure: facts in, a plan out."""
