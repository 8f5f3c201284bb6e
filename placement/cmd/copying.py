"""``placement-manage copy``: a whole database into another, empty one."""

import argparse
import dataclasses
from typing import Any

from oslo_config import cfg

from placement import conf
from placement.db import migration
from placement.objects import copying
from placement.objects.ledger import Ledger
from placement_foundation.database import engine, storage
from placement_foundation.observing import progress

CATEGORY = "copy"


def add(categories: Any) -> None:
    """Add the command to those of ``placement-manage``."""
    parser: argparse.ArgumentParser = categories.add_parser(
        CATEGORY, help=run.__doc__, description=run.__doc__
    )
    parser.add_argument("source", metavar="<from>", help="The URL of the database.")
    parser.add_argument("target", metavar="<to>", help="The URL of the empty one.")
    parser.set_defaults(code_of_trouble=1)


def run(config: cfg.ConfigOpts) -> int:
    """Copy all that a database has into an empty one, all of it or nothing."""
    settings = conf.database_settings(config)
    source, target = (
        storage.connect(dataclasses.replace(settings, connection=url))
        for url in (config.category.source, config.category.target)
    )
    try:
        engine.require_file(source.engine.url)
        with (
            progress.shown() as report,
            source.patient() as reading,
            target.patient() as writing,
        ):
            reading.look(migration.SCHEMA.check_newest)
            migration.SCHEMA.upgrade(target, report=report)
            rows = reading.look(
                lambda old: Ledger(writing).write(
                    lambda new: copying.copy(old, new, report), attempts=1
                )
            )
            writing.write(copying.analyse)
    finally:
        source.engine.dispose()
        target.engine.dispose()
    print(f"{rows} rows were copied, and compared")
    return 0
