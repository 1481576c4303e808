"""Defines the driver and CUDA versions of all simulated GPUs."""

DRIVER = "580.95.05"
CUDA = "13.0"
