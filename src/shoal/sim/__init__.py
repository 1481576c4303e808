"""Simulation: traces and made-up workloads drive the same engine that a cluster would."""
