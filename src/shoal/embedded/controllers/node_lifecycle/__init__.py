"""The node lifecycle controller, which marks and taints nodes without heartbeats and their pods as not ready."""
