"""Applications for servers that import them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def init_application() -> "WSGIApplication":
    """Return the service that configuration files and the environment describe.

    Deployments of OpenStack Placement up to 16.0.0 name it in their web server's files.
    """
    from placement import app

    return app.start_from_environment()
