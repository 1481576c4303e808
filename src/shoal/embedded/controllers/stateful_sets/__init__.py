"""The StatefulSet controller: pods with stable names, volumes and an order."""
