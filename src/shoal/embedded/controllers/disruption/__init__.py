"""Computes how many pods of each PodDisruptionBudget may be disrupted now."""
