"""The ClusterPolicy of the GPU operator as typed values."""
