"""Carries out driver upgrades node by node; `shoal.operator.upgrades` decides."""
