"""Carries installations out: reads facts, applies objects in order, waits for them, removes them."""
