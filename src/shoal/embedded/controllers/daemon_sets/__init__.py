"""The DaemonSet controller: one pod on each eligible node."""
