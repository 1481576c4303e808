"""What the server serves, told to clients: they find every path, verb and short name here."""
