"""Where objects are kept across restarts: a port, and what stands behind it."""
