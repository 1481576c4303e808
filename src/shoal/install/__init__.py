"""Decides what an installation of Shoal consists of and whether a cluster is ready for it, without any request."""
