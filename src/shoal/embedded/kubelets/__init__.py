"""Simulated kubelets: they register nodes, run pods by stages, and answer for them."""
