"""What is asked of clusters."""
