"""Plans nodes and replicas: pure decisions, which ask the engine whether something would fit."""
