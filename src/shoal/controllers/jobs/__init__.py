"""Jobs: pods that are to succeed so many times, each counted exactly once."""
