"""Preemption for quota: victims and preemptors."""
