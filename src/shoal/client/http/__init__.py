"""The port of `shoal.client` over HTTP, for any Kubernetes API server."""
