"""The token cleaner, which deletes expired bootstrap tokens of new machines."""
