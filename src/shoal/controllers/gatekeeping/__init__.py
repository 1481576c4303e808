"""What is held back at its creation, so that nothing runs before it is admitted."""
