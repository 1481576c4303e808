"""Preemption: victims, preemptors, and the proof that it helps."""
