"""The TTL controller, which deletes finished Jobs after their `ttlSecondsAfterFinished`."""
