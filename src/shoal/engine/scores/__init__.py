"""Preferences among nodes that fit, one file per idea. Profiles (see `profile`) choose and weigh them."""
