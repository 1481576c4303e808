"""The life of a NodeClaim: from a plan to a node that takes pods, and to its end."""
