"""Converts queues between Kueue, KAI and Volcano."""
