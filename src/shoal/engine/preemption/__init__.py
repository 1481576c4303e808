"""Searches victims for preemptors, and proves that their eviction helps."""
