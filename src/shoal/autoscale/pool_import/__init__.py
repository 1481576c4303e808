"""Converts node groups of other tools to NodePools."""
