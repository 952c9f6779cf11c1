"""An MCP server over the Python client: memory for any agent that speaks the Model Context Protocol."""
