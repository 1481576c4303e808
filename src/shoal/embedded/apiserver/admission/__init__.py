"""Built-in admission plugins: they set defaults that depend on other objects, and refuse requests because of other
objects.
"""
