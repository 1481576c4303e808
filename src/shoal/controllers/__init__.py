"""Shoal's reconcile loops. Each is an API client; they communicate through the objects of the API server only."""
