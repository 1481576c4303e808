"""Implements the client protocol (`client/port.py`) over HTTP, for any Kubernetes API server."""
