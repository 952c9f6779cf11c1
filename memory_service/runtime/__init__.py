"""What a server's calls share while they run, whatever they ask for."""
