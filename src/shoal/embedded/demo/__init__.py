"""What happens in `shoal up --demo`: three teams and their work."""
