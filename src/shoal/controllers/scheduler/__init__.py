"""Executes scheduling decisions: binds and evicts pods, and writes their conditions."""
