"""Cluster Autoscaler's choices: which node group grows, how growth is balanced, which node may be removed."""
