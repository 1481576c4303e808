"""Simulated machines: the hardware of a node before anything runs on it."""
