"""The stored values of the node service, and the SQL that loads and stores them."""
