"""Who gives quota back, and for whom."""
