"""Runs the cases about the algebra of requirements."""
