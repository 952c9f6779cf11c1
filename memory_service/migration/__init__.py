"""Moving records from one store to another."""
