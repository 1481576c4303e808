"""The pages are held against the code that they describe."""
