"""Kinds that make pods: deployments and sets, jobs and their schedules."""
