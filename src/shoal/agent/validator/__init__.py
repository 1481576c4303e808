"""Tests the layers below a GPU container, from the driver to a CUDA call, and names the first one that fails."""
