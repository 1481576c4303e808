"""Labels the node of this machine by its GPUs."""
