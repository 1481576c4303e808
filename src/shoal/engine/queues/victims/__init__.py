"""Selects victims to preempt for quota."""
