"""Concrete parts put together: the only room that names servers, controllers, kubelets and adapters at once."""
