"""APIs of the cluster that other servers serve (APIService), and the list of those that this one serves itself."""
