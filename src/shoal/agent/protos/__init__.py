"""The kubelet's gRPC interfaces: definitions (`.proto`), and the modules that `python -m tools.protos` makes of them.

The definitions have the parts that Shoal uses, with the packages, names and numbers of the published interfaces.
"""
