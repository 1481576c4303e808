"""Cases of the components of GPU nodes: feature discovery, and the device plugin."""
