"""A living cluster as the documents that `-f` reads: all that decisions depend on, and nothing that is private."""
