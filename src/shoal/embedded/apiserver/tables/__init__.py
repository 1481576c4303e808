"""Lists as a person sees them: the rows that `kubectl get` prints are made by the server."""
