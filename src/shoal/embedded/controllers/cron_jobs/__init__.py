"""CronJobs: jobs that are made at times."""
