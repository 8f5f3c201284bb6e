"""The wire: what a body or query may be, and what a reply looks like."""
