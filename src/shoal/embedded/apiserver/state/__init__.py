"""The state of the API server: objects, their history, and watchers."""
