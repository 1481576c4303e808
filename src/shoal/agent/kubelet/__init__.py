"""Shoal's own small kubelet, which runs the pods of this machine; and clients of the interfaces of another kubelet."""
