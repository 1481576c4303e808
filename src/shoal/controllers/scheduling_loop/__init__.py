"""What one process of Shoal knows and decides; everybody else carries out."""
