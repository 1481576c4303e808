"""ResourceQuota: what counts against it, when a write is too much, and the arithmetic of what is used."""
