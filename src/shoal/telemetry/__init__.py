"""What a process measures of itself, and the door where others read it: figures in, Prometheus' text out."""
