"""Pods that wait for admission by themselves: single ones, groups, and those of kinds that keep pods running."""
