"""Suspends or gates objects at creation, so that nothing runs before it is admitted."""
