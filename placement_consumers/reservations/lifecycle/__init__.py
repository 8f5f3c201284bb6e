"""What happens to leases and hosts: each operation, and what ends it if it fails.

An operation is a transaction that claims its subject and writes down what is to be, the
steps of a plan outside, and a transaction that says that it is done. Whatever stops it
in between, the tables tell how it ends: see docs/placement-reservations.rst.
"""
