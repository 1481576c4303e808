"""Opens the scheduling gates that hold the pods of queued Workloads."""
