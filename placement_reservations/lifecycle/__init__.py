"""The operations on leases and hosts, and how each is completed if it fails.

An operation is a transaction that claims its subject and writes down the goal, the
steps of a plan outside, and a transaction that records that it is done. Whatever stops
it in between, the tables say how to end it: see docs/placement-reservations.rst.
"""
