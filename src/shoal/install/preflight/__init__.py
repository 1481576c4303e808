"""Decides from facts about a cluster whether an installation will work, and what to correct before it begins."""
