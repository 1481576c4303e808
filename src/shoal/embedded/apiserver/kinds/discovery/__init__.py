"""Strategies of the kinds that list the pods behind Services."""
