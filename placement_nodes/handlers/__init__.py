"""What the operations of the bare metal API do."""
