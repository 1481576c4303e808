"""The rules: a module for each subject, with the declaration of every rule beside its check (`../declarations.py`).

The catalogue reads all modules of this package, so each has checks."""
