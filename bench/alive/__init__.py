"""What the embedded cluster does when nodes and controllers live in it."""
