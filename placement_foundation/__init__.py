"""The parts that all services share: versions, steps of a request, transactions."""
