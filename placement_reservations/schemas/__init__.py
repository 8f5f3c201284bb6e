"""The wire: valid bodies and queries, and the form of replies."""
