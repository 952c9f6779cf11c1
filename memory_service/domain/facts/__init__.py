"""Facts about users: how they are found, worded, rated, saved, corrected and consolidated."""
