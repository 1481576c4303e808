"""Volumes, claims of them and storage classes as values, and which volume serves a claim where."""
