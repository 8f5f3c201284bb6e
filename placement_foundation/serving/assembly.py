"""The first steps in the assembly of every service."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from oslo_config import cfg

from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.migration import History
from placement_foundation.database.storage import Database
from placement_foundation.observing.log import set_up_logging
from placement_foundation.option import DatabaseSettings

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def start_from_environment(
    read: Callable[[list[str] | None], cfg.ConfigOpts],
    project: str,
    start: Callable[[cfg.ConfigOpts], "WSGIApplication"],
) -> "WSGIApplication":
    """Return the service that configuration files and the environment describe.

    :param read: returns the configuration in some files; None means those of the
        default search
    :param project: the name of the service in its log, and of its files
    :raises cfg.ConfigFilesNotFoundError: the environment names a directory without them
    :raises cfg.RequiredOptError: no file or variable names the database
    """
    config = read(option.list_files(os.environ, project))
    set_up_logging(config, project)
    return start(config)


def connect(settings: DatabaseSettings, schema: History) -> Database:
    """Return a database, whose tables are migrated first if that is wanted.

    It has no open connections, so servers may fork.

    :raises Exception: the database cannot be reached
    """
    database = storage.connect(settings)
    if settings.sync_on_startup:
        schema.upgrade_to_serve(database)
    database.rest()
    return database
