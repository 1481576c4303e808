"""Counters, gauges and histograms, and their text exposition for Prometheus."""
