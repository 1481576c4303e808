"""Facts about GPUs that the engine and the simulated nodes share: MIG layouts, tilings and NUMA policies."""
