"""Simulated machines: what a node of some profile is, before anything runs on it."""
