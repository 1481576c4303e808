"""ResourceClaims that pods ask for by template, and the end of those that nobody uses any more."""
