"""Deletes pods of deleted nodes, terminating pods that were never bound, and finished pods beyond a limit."""
