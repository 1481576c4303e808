"""Kubernetes objects as typed values, and the rules written on them (selectors, affinity, taints, requests).

Wire formats live here and in the stores, nowhere else: what leaves this package is already checked.
"""
