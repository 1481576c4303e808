"""The driver that all simulated GPUs have."""

DRIVER = "580.95.05"
CUDA = "13.0"
