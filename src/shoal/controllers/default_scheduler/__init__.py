"""A pod-at-a-time scheduler that behaves as kube-scheduler does, so that a cluster is useful by itself."""
