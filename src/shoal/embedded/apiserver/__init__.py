"""The API server of the embedded cluster: Kubernetes' API, its rules and its storage, for one machine."""
