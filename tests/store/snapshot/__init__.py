"""Pictures of a living cluster."""
