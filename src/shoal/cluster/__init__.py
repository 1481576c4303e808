"""The embedded control plane: a Kubernetes-compatible API server for one machine."""
