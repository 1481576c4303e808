"""Providers of machines: the port, and its adapters."""
