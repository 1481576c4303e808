"""Runs the cases about MIG configuration."""
