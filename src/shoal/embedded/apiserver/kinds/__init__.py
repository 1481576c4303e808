"""What each built-in kind fills in and refuses: one strategy per kind, listed in `table`."""
