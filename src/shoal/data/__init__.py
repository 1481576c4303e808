"""Facts about hardware that ship with the product: MIG layouts, GPU models, cloud instances."""
