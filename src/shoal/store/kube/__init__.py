"""Any Kubernetes API server over HTTP, behind the port of `store/live`."""
