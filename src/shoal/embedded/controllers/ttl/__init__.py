"""Jobs that have ended go after their time."""
