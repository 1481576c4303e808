"""From a ClusterPolicy and facts about the nodes to the objects of each component."""
