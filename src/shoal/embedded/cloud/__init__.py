"""A simulated cloud: machines that are requested boot as simulated nodes."""
