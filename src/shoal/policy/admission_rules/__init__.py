"""The rules of the catalogue at admission: expressions for the API server, answers of the webhook, and mutations.

Stateless rules become policies of the API server, which work while Shoal does not run. Rules that need other objects
are checked by the webhook. Both read their modes from the same place.
"""
