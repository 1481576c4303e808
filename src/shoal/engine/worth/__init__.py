"""Computes the value of free capacity for the usual mix of pods: the tables of Shoal's own policy."""
