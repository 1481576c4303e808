"""Shares GPUs between containers: MPS daemons, compute modes, time slices."""
