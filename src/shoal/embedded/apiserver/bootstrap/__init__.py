"""The objects that every cluster has from the start: created at the first start, completed at later ones."""
