"""Metrics, health checks and the endpoint that serves them in Prometheus' format."""
