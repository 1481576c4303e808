"""The web dashboard of a cluster: pages that the server renders, and events that keep them up to date."""
