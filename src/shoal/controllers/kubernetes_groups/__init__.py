"""Kubernetes' own pod groups (`scheduling.k8s.io`): what their status says."""
