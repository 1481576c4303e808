"""Runs the cases about the metrics exporter."""
