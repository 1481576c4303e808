"""Computes and writes the statuses of Workloads."""
