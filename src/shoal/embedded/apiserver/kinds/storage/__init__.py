"""Storage classes, and what drivers of storage register."""
