"""Runs the cases about node disruption."""
