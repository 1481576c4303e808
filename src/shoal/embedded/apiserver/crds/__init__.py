"""Custom resources: what a CustomResourceDefinition means, and what its objects must obey."""
