"""Decides by a language model. Rules check what it answers: it overlooks a "not" or a number now and then."""
