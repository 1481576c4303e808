"""Ingresses, network policies and the address ranges of Services."""
