"""Decides by which placeholder pods nodes are requested from another autoscaler."""
