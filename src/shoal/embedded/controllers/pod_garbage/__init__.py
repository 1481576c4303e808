"""The pod garbage collector, which deletes pods of deleted nodes, terminating pods without a node, and finished pods
beyond a limit.
"""
