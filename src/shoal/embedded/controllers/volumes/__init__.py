"""Controllers for volumes in a cluster without storage: binding, provisioning, resizing, protection and reclaim."""
