"""Creates the default service account and the CA ConfigMap of every namespace, and tokens on request."""
