"""Clients of the kubelet's interfaces."""
