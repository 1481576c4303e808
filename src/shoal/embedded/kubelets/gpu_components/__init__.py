"""The pods of a GPU operator on simulated nodes: which layer of GPU software each adds, when, and what it prints."""
