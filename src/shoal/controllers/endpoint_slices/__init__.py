"""Who stands behind a Service, told as EndpointSlices and, for older readers, as Endpoints."""
