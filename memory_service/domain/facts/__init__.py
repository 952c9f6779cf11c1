"""Facts about the user: their wording, their category and importance, and how rules find them in messages."""
