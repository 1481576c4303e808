"""Evaluates rules about pods near other pods by counts per domain; only requests with such rules pay for the counts."""
