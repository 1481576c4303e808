"""The values of an installation: files and `--set` options as helm reads them, the known options and their defaults."""
