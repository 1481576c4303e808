"""GPUs of a simulated node: cut, shared, handed out, used, broken; and what tools say of them."""
