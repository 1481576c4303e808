"""The objects of custom.metrics.k8s.io and external.metrics.k8s.io, from series of metrics."""
