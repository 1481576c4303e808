"""Shoal's own small kubelet, which runs the pods of one node as processes of this machine."""
