"""Pod groups of other schedulers: one module for each ecosystem."""
