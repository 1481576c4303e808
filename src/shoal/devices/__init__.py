"""Logic about the GPUs of a node that the engine, simulated nodes and agents share.

It has MIG layouts and positions, plugin and MIG configurations, advertised devices and their allocation, labels,
metrics, and Xid errors. It imports neither numpy nor CEL nor a client, so that an agent stays small.
"""
