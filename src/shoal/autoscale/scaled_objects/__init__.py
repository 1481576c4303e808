"""Decides what KEDA decides for a ScaledObject: activity, fallback, formula, the size of its target, admission."""
