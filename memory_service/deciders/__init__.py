"""Who decides what memories say, are worth and have to do with each other: a language model, or rules."""
