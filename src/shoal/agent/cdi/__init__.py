"""CDI specifications of this machine's GPUs: reads the driver's files and writes the specification."""
