"""Runs containers as plain processes of the user who started Shoal."""
