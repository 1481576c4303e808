"""Pod groups of scheduler-plugins: what is told of them."""
