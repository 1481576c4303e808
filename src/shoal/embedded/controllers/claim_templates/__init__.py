"""The resource claim controller: creates the ResourceClaims that pods request by template, and deletes unused ones."""
