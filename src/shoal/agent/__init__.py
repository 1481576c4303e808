"""The node agent: the parts that run on a machine with GPUs."""
