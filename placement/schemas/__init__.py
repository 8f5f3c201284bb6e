"""The wire: the schemas of bodies, queries and replies."""
