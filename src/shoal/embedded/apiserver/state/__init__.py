"""What the API server knows: objects, their history, and who follows them."""
