"""What all services here share: versions, the steps of a request, transactions."""
