"""Decides by a language model. Rules check its answers: it overlooks a "not" or a number now and then."""
