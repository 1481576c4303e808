"""Which nodes are provisioned, and which pods they are for."""
