"""``placement-manage``: the database commands for operators."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from oslo_config import cfg

from placement import conf, microversion
from placement.cmd import (
    advice,
    checking,
    copying,
    demonstration,
    online_data_migrations,
)
from placement.db import migration
from placement.objects import standard_name
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement_foundation.database import storage
from placement_foundation.database.origin import Origin
from placement_foundation.http.version import LATEST, Version
from placement_foundation.observing import progress
from placement_foundation.serving import command, pipe

PROGRAM = "placement-manage"
# The arguments before --help that show the whole syntax.
OPENAPI = "openapi"
HELPS = (
    "db",
    "os-traits",
    demonstration.CATEGORY,
    OPENAPI,
    copying.CATEGORY,
    "check",
)
# The categories that work without a configured database.
WITHOUT_DATABASE = (demonstration.CATEGORY, OPENAPI, copying.CATEGORY)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if command.completes(given, PROGRAM, main, "", *HELPS):
        return 0
    config = cfg.ConfigOpts()
    conf.register(config)
    config.register_cli_opt(
        cfg.SubCommandOpt(
            "category", title="categories of commands", handler=_add_categories
        )
    )
    try:
        _read(config, given)
        # The reader of the output may leave, which does not end the work.
        with pipe.dropping_the_rest():
            return _run(config)
    except command.TROUBLE as exc:
        command.complain(PROGRAM, exc, config)
        if isinstance(exc, cfg.RequiredOptError):
            advice.print_way_on(PROGRAM, config, given)
        return _code_of_trouble(config)


def _read(config: cfg.ConfigOpts, given: Sequence[str]) -> None:
    try:
        config(
            given,
            project=conf.PROJECT,
            prog=PROGRAM,
            version=metadata.version(conf.DISTRIBUTION),
        )
    except cfg.RequiredOptError:
        # No database is configured.
        if config.category.name not in (None, *WITHOUT_DATABASE):
            raise
        demonstration.take_embedded(config)


def _run(config: cfg.ConfigOpts) -> int:
    if config.category.name is None:
        config.print_help()
        return 1
    if config.category.name == OPENAPI:
        return print_openapi(config)
    if config.category.name == copying.CATEGORY:
        return copying.run(config)
    if config.category.action is None:
        config.category.print_help()
        return 0
    database = storage.connect(conf.database_settings(config))
    command_line = f"{PROGRAM} {config.category.name} {config.category.action}".rstrip()
    days = config.ledger.keep_journal_days
    journal = Keeper(database, days) if days else None
    try:
        exit_code: int = config.category.run(
            Ledger(database, journal, Origin(command_line)), config
        )
        return exit_code
    finally:
        database.engine.dispose()


def _code_of_trouble(config: cfg.ConfigOpts) -> int:
    try:
        code: int = config.category.code_of_trouble
    except cfg.Error:
        # The arguments were not even parsed.
        return 1
    return code


def sync(ledger: Ledger, config: cfg.ConfigOpts) -> int:
    """Migrate the schema to the newest revision."""
    with progress.shown() as report:
        migration.SCHEMA.upgrade(ledger.database, report=report)
    return 0


def version(ledger: Ledger, config: cfg.ConfigOpts) -> int:
    """Print the revision of the schema."""
    recorded = migration.SCHEMA.version(ledger.database)
    print(recorded)
    if recorded is None:
        print(
            "the database has no revision: run placement-manage db sync",
            file=sys.stderr,
        )
    return 0


def stamp(ledger: Ledger, config: cfg.ConfigOpts) -> int:
    """Record a revision of the schema without migrating."""
    migration.SCHEMA.stamp(ledger.database, config.category.revision)
    return 0


def migrate_online(ledger: Ledger, config: cfg.ConfigOpts) -> int:
    """Add the data that older releases left out."""
    return online_data_migrations.run(
        ledger, conf.settings(config), config.category.max_count
    )


def sync_traits(ledger: Ledger, config: cfg.ConfigOpts) -> int:
    """Add the traits of the installed os-traits library, and print them."""
    added = standard_name.synchronise_traits(ledger)
    for name in added:
        print(f"added {name}")
    if not added:
        print("no trait was missing")
    return 0


def print_openapi(config: cfg.ConfigOpts) -> int:
    """Print the OpenAPI description of the API."""
    # It needs all of the API, for which no other command should wait.
    from placement import openapi

    document = openapi.describe(_parse_version(config.category.microversion))
    print(json.dumps(document, indent=2))
    return 0


def _parse_version(text: str) -> Version:
    if text not in microversion.BY_NAME:
        raise ValueError(
            f"{text!r} is not a microversion; they go from {microversion.MINIMUM} to "
            f"{microversion.MAXIMUM}, and '{LATEST}' is the newest"
        )
    return microversion.BY_NAME[text]


def _add_categories(categories: Any) -> None:
    # Without a category, the help is shown.
    categories.required = False
    _add_database(_add_category(categories, "db", "Manage the database."))
    _add_traits(_add_category(categories, "os-traits", "Manage the standard traits."))
    demonstration.add(categories)
    copying.add(categories)
    checking.add(categories)
    _add_openapi(categories)


def _add_category(categories: Any, name: str, purpose: str) -> Any:
    """Add a category, and return the object to which its actions are added."""
    parser = categories.add_parser(name, help=purpose, description=purpose)
    # Only this function has the parser, which prints the help of the category.
    parser.set_defaults(print_help=parser.print_help)
    return parser.add_subparsers(title="actions", dest="action")


def _add_database(actions: Any) -> None:
    _add_action(actions, "sync", sync)
    _add_action(actions, "version", version)
    _add_action(actions, "stamp", stamp).add_argument(
        "revision",
        metavar="<version>",
        help="The id of a revision or its beginning; 'head'; or 'base' for none.",
    )
    repairs = _add_action(actions, "online_data_migrations", migrate_online)
    # 1 means: call it again.
    repairs.set_defaults(code_of_trouble=online_data_migrations.FAILED)
    repairs.add_argument(
        "--max-count",
        metavar="<number>",
        help="The most rows to repair. The exit code is 1 until none is left. All "
        "rows are repaired, in batches, if it is not given.",
    )


def _add_traits(actions: Any) -> None:
    _add_action(actions, "sync", sync_traits)


def _add_openapi(categories: Any) -> None:
    purpose = print_openapi.__doc__
    parser = categories.add_parser(OPENAPI, help=purpose, description=purpose)
    parser.set_defaults(code_of_trouble=1)
    parser.add_argument(
        "--microversion",
        metavar="<X.Y>",
        default=LATEST,
        help="The microversion that is described, by default the newest.",
    )


def _add_action(
    actions: Any, name: str, run: Callable[[Ledger, cfg.ConfigOpts], int]
) -> argparse.ArgumentParser:
    purpose = run.__doc__
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=purpose, description=purpose
    )
    parser.set_defaults(run=run, code_of_trouble=1)
    return parser


if __name__ == "__main__":
    sys.exit(main())
