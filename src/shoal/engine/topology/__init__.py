"""Stores topology domains: how close nodes are to each other."""
