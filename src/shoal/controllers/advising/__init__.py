"""Warnings about objects that were taken as they are and cannot be meant so."""
