"""The CronJob controller, which creates Jobs by schedule."""
