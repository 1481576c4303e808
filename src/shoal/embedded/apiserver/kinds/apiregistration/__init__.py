"""APIs that other servers answer."""
