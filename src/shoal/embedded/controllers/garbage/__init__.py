"""Garbage collection: what its owners leave behind goes, or is let go, as their deletion asked."""
