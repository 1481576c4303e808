"""Where the pods behind Services are."""
