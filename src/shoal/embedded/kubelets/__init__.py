"""Simulated kubelets: they register nodes, run pods by stages, and serve logs, commands and metrics."""
