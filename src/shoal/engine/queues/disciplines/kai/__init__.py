"""Implements KAI's rules: quotas, limits, fair shares, and units of admission."""
