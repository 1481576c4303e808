"""Runs the cases about driver upgrades."""
