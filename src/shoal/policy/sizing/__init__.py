"""Says which GPUs hold a model, how fast they serve it, and what that costs. Pure: facts in, figures out."""
