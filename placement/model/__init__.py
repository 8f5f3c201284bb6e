"""Values, and the rule of what fits. Nothing here knows a database or a wire."""
