"""What networks learn from: images and texts with labels and domains."""
