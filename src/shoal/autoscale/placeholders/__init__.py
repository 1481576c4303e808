"""Decides which placeholder pods stand for nodes that another autoscaler has to provision."""
