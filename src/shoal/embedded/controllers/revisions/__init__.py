"""ControllerRevisions: the former templates of StatefulSets and DaemonSets, for rollbacks."""
