"""The steps of a request: versions, errors, schemas, policy, what surrounds them."""
