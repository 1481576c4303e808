"""ResourceQuota: what an object uses of it, and whether that is more than is left."""
