"""Requests for client certificates."""
