"""Builders: what a test needs of a fleet, in as many words as a person would use for it."""
