"""The controllers of certificate signing requests: approval of kubelets' requests, signing, and cleanup."""
