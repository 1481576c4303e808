"""API priority and fairness: whose request is served when there are more than the server takes at once."""
