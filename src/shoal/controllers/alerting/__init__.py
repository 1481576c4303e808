"""Evaluates the rules of alerts without Prometheus, and sends the alerts to their receivers."""
