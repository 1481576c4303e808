"""How far the GPU operator is: the policy as a whole, and each node with its first failing layer."""
