"""What every store must do. The cases know nothing of any store but its capabilities."""
