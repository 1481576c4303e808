"""Persistent storage of objects: a port and its adapters."""
