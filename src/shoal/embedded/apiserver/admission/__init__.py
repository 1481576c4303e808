"""What the API server itself adds to objects on their way in, and refuses for the sake of other objects."""
