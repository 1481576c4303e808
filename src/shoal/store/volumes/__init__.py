"""Volumes, claims and storage classes as values, and the rules by which a volume serves a claim on a node."""
