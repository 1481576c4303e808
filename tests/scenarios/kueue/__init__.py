"""Restated cases of Kueue, decided by Shoal's queues and judged."""
