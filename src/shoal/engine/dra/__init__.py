"""Devices of dynamic resource allocation: what drivers publish, what claims ask for, and which device goes to whom."""
