"""Reconcile loops. Each is an ordinary API client; they meet only in the objects of the server."""
