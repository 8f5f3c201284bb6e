"""What requests for placements do: read, choose, write, until it has worked."""
