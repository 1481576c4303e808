"""The MIG manager of a node: plans and applies layouts, and follows the label of the Node."""
