"""Strategies of the kinds that select how containers are run."""
