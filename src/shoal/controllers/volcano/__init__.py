"""Volcano's queues, pod groups and jobs, looked after where no Volcano runs."""
