"""Warns about objects that are valid and do something else than their author intended."""
