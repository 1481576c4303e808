"""Writes a live cluster as documents that `-f` reads, with all fields that decisions depend on, and without
confidential content.
"""
