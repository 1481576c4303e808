"""The Pod Security Standards: which pods a namespace takes by its labels."""
