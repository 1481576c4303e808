"""The plugins of Volcano jobs, which add objects to a job, and variables, names and mounts to its pods."""
