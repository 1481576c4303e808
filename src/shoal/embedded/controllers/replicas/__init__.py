"""The ReplicaSet and ReplicationController controllers: a number of pods of one template."""
