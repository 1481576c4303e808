"""What those share who hold work until its Workload is admitted: their rules, and what an admission puts on pods."""
