"""The stored values, and the SQL that loads and stores them."""
