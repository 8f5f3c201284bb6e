"""What each operation does, step by step: one module per resource.

What talks to Placement is left for later, when the transaction of the request is over.
"""
