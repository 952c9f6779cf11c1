"""What may be written: asked before anything is."""
