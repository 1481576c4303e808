"""Composes servers, controllers, kubelets and adapters; the only package that names all of them."""
