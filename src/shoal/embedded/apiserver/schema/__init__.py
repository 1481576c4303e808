"""Shapes of objects: what fields there are, of what type, and how lists and maps of them are merged."""
