"""Decides admission to queues: which workloads may use how much of which flavor, which is admitted next, and which
return borrowed quota.
"""
