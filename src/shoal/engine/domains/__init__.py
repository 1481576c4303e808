"""Rules about pods near other pods: counts per domain, paid for only by shapes that use them."""
