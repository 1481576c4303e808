"""The device plugin: advertises this node's GPUs to the kubelet and answers its requests over gRPC."""
