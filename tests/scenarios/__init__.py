"""Restated cases of other schedulers, decided by Shoal and judged: `python -m tests.scenarios DIR...`."""
