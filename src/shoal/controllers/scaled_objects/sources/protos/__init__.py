"""KEDA's interface of external scalers: its definition, and the modules that `python -m tools.protos` makes of it."""
