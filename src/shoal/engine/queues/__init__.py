"""Queues: who may use how much of which flavor, who is admitted next, who gives back what was borrowed."""
