"""Rules about objects: probable mistakes in valid ones, and what an API server sets, refuses and counts at creation."""
