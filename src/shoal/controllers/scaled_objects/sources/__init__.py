"""Asks the servers of triggers: bounded in time and size, only at addresses that triggers may ask."""
