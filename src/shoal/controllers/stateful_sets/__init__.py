"""StatefulSets: pods with names, volumes and an order."""
