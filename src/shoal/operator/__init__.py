"""Decisions of the operator of NVIDIA's GPU stack: pure functions, without a client, a clock or a file."""
