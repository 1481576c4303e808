"""HorizontalPodAutoscalers in their two served versions."""
