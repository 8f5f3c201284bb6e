"""The console: a web page, served by the service, that shows what its APIs report.

``page`` has the files, which are built from ``console/`` at the top of the tree;
``session`` gets tokens from the identity service; ``site`` serves both next to the API.
"""
