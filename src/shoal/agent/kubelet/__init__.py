"""Clients of the kubelet's interfaces, and of the API server for what the kubelet does not say about pods."""
