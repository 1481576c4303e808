"""Assigns flavors to the pod sets of a workload, and determines what that requires."""
