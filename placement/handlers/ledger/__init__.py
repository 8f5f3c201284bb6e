"""What the operations of the ledger API do, with one module per question."""
