"""Serves discovery: groups, versions, resources, verbs and short names for clients."""
