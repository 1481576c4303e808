"""How containers are run."""
