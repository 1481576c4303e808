"""The operations of the API on objects: read, list, watch, create, change, delete."""
