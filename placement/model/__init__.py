"""Values, and the rule of what fits, without a database or a wire."""
