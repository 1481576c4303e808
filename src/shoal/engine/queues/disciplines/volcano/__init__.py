"""Implements Volcano's rules: enqueueing, capabilities, and quota by deserved amounts or weights."""
