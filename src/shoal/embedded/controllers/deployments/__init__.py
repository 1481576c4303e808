"""Deployments: replica sets, one for each template, and the way from an old one to a new one."""
