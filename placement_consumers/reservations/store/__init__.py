"""What is kept: values, and the SQL that loads and stores them."""
