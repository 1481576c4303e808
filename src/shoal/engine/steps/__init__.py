"""Lists the steps of a scheduling cycle, one file per step."""
