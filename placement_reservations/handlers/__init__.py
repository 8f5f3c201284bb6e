"""What each operation does, step by step: one module per resource.

Calls to Placement are left for later, when the transaction of the request is over.
"""
