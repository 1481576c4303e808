"""Gangs as other schedulers write them down: one module for each ecosystem's pod group."""
