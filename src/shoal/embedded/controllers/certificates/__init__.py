"""Requests for certificates: approved where that is a matter of course, signed where approved, and cleared away."""
