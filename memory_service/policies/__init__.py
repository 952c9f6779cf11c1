"""Write policies, which judge each write before it happens."""
