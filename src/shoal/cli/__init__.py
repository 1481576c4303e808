"""Implements the command line: one file per command, each of which parses options, calls the code below, and prints."""
