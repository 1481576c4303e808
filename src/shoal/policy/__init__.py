"""Rules about objects that are valid and do something else than their authors intended."""
