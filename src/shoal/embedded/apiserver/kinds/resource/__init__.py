"""Devices that pods claim: classes, claims, templates and what drivers offer."""
