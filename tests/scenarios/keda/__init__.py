"""Runs the cases about ScaledObjects of KEDA."""
