"""Priority and fairness: stored and checked, as in every cluster."""
