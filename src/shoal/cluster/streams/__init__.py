"""Connections that stay open into a pod: `exec` is answered, the others are refused in one line."""
