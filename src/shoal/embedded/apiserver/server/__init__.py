"""The HTTP server of the control plane."""
