"""Basic values of all layers: exact quantities, and errors typed by who must act."""
