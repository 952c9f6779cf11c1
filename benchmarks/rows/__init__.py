"""The rows of the table: each module measures one of them with `run`."""
