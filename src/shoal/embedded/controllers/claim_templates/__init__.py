"""ResourceClaims that pods ask for by template, and the deletion of unused ones."""
