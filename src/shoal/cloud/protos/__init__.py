"""The gRPC interfaces of providers of machines."""
