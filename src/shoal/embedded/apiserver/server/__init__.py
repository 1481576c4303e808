"""The HTTP door of the control plane."""
