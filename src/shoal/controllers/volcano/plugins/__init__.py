"""What a job's plugins add: objects beside it, and to each of its pods variables, names and mounts."""
