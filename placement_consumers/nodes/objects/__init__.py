"""What the node service knows: values, and the SQL that loads and stores them."""
