"""Plans how Shoal takes over the objects of Kueue, Volcano or KAI, and how that is reverted; it writes nothing."""
