"""Models devices of dynamic resource allocation: what drivers publish, what claims request, and the device of each
claim.
"""
