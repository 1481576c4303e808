"""What a round does, one file per step: readable lists of them are the disciplines."""
