"""Many processes against a running service, and a check of all that it answered.

``python -m tests.stress --help`` tells how to run it for longer than the tests do.
"""
