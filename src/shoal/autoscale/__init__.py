"""Decides how many nodes and pods there should be: pure code that reads facts and returns decisions."""
