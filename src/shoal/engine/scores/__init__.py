"""Implements preferences among nodes that fit, one file per rule. Profiles (see `profile`) choose and weigh them."""
