"""Runs containers by a container runtime, such as containerd or CRI-O, over the Container Runtime Interface."""
