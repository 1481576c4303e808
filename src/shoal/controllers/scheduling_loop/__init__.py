"""The scheduling loop, which decides quota and placement together; executors carry the decisions out."""
