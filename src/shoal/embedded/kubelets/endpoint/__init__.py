"""The doors of simulated kubelets: logs, commands, figures."""
