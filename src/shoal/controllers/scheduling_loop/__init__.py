"""The scheduling loop: quota and placement decided together; executors carry the decisions out."""
