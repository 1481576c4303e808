"""Shoal's own controllers: reconcile loops over the objects of the API server. Each is an API client; they communicate
through these objects only.
"""
