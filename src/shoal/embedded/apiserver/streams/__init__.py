"""Doors below pods and nodes that lead to a kubelet; where there is none, this server answers in its place."""
