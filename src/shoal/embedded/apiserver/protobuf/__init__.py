"""Bodies in Kubernetes' protobuf, which several `kubectl create` commands and typed clients send."""
