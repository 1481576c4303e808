"""What `shoal run` costs and how quick it is, against an API server in another process."""
