"""Tokens with which new machines introduce themselves: they go when their time is up."""
