"""Databases: engines, transactions, trouble, migrations."""
