"""How close nodes are to each other."""
