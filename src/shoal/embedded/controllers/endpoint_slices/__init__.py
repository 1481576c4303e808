"""The EndpointSlice and Endpoints controllers: the pods behind each Service."""
