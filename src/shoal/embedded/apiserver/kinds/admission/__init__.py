"""Webhooks and policies that admit requests."""
