"""Roles and who has them."""
