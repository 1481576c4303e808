"""Runs the cases about node provisioning."""
