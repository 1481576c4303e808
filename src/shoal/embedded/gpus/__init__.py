"""The GPUs of a simulated node: MIG layouts, sharing, allocation, usage and faults, and the output of nvidia-smi and
the DCGM exporter.
"""
