"""Implements the queue disciplines of other projects as rules over the quota tree."""
