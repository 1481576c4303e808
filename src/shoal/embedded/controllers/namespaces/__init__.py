"""Namespaces that are deleted: emptied first, then let go."""
