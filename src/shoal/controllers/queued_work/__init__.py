"""What the controllers of queued jobs and pods share: configuration, and what an admission adds to pods."""
