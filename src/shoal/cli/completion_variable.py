"""Names the environment variable by which a shell asks `shoal` for completions."""

VARIABLE = "_SHOAL_COMPLETE"
