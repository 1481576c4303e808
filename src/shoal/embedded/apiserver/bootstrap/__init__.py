"""What every Kubernetes has before anybody wrote anything: made on the first start, completed on the next ones."""
