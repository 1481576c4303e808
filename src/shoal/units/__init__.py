"""Ground values every floor speaks in: exact quantities, and errors typed by whose turn it is."""
