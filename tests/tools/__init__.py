"""What tools from PyPI say of the project, each in a tox environment of its own."""
