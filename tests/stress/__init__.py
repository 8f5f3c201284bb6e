"""Many processes against a running service, and a check of all that it answered.

``python -m tests.stress --help`` shows how to run it for longer than the tests do.
"""
