"""The embedded API server, called from within its own process."""
