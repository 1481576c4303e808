"""Decides ProvisioningRequests of Cluster Autoscaler's API."""
