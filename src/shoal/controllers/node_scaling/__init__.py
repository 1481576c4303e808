"""Provisions and removes nodes."""
