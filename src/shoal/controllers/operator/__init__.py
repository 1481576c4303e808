"""The GPU operator: keeps the objects of a ClusterPolicy, and the labels of the nodes on which they run."""
