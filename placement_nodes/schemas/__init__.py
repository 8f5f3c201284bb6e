"""Documents of the bare metal API, and the values that they represent."""
