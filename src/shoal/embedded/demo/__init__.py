"""The workloads of `shoal up --demo`: three teams and their jobs."""
