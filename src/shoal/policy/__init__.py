"""Rules about objects: what an API server sets, refuses and counts when an object is created."""
