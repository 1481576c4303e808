"""Pods bound, ended and told, as the brain has decided."""
