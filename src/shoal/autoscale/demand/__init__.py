"""Demand for GPUs as it was recorded, and what it is expected to be."""
