"""The objects of an installation as they are applied: permissions, Deployments, network, policies."""
