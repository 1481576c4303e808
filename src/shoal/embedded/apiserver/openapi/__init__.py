"""The OpenAPI documents of what is served: for kubectl explain, apply and field validation."""
