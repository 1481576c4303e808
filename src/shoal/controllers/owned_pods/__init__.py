"""What controllers that keep pods share: how they see a pod, whose it is, how many at once, how it is made."""
