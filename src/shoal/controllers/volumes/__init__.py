"""Volumes in a cluster without storage: claims are bound, provisioned, grown, kept while in use and reclaimed."""
