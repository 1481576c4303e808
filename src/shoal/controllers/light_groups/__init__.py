"""The controller for the status of scheduler-plugins' PodGroups."""
