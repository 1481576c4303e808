"""The API server made worse on purpose, so that clients can be seen to cope."""
