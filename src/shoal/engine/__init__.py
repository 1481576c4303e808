"""The scheduling brain: who runs where, on which device, and why not. Pure: facts in, a plan out."""
