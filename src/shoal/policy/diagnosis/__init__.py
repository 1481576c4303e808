"""Finds the causes of known problems of GPU clusters in objects, Events, logs and metrics."""
