"""Readers of published traces; each yields the common arrival records and complains by file, row and column."""
