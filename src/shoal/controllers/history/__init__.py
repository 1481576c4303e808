"""Records the history of devices. It only reads the API server, and writes the history's own storage."""
