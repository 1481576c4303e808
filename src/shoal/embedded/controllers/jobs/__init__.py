"""The Job controller: pods that must succeed a number of times, each counted exactly once."""
