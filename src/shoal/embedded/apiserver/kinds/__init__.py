"""Strategies of the built-in kinds: defaults and validation, listed in `table`."""
