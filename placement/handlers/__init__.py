"""What each operation does, step by step: one module per resource."""
