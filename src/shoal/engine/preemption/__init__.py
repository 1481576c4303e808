"""Who yields, to whom, and the proof that it helps."""
