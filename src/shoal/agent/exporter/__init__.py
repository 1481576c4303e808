"""Serves the metrics of a node's GPUs for Prometheus, as the DCGM exporter does, with series of Shoal's own."""
