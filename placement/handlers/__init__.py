"""What each operation does, step by step, with one module per resource."""
