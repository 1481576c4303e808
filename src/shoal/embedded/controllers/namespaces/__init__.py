"""The namespace controller, which deletes the content of terminating namespaces."""
