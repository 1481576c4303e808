"""Ends grants of more quota for teams at their time."""
