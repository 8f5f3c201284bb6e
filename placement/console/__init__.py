"""The console: a web page that the service serves, which shows what its APIs tell.

``page`` has the files, which are built from ``console/`` at the top of the tree;
``session`` gets tokens of the identity service; ``site`` puts both beside the API.
"""
