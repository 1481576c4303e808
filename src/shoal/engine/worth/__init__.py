"""What free room on a node is worth to the pods that usually come: the tables behind Shoal's own policy."""
