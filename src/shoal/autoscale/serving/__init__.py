"""Decides how many replicas of a model server there should be, from the metrics of the servers themselves.

The use of GPUs is no signal here: with continuous batching it is near 100 percent for one request as for fifty.
"""
