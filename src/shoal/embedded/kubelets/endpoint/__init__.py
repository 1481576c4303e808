"""The HTTP endpoint of simulated kubelets: logs, commands, metrics."""
