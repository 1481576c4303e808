"""Bodies of requests: from bytes in some format to plain JSON values."""
