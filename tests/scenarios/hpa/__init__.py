"""Runs the cases about HorizontalPodAutoscalers."""
