"""Shared parts of controllers that own pods: the pod view, ownership, creation and deletion."""
