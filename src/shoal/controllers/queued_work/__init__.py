"""Shared parts of the controllers of queued jobs and pods: configuration, and changes of pods at admission."""
