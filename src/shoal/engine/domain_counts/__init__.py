"""Counts pods by topology domain, for the rules of pods about other pods."""
