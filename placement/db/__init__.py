"""The tables, and the transactions on them."""
