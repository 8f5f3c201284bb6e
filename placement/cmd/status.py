"""``placement-status``: whether a deployment is ready for this release."""

import sys
from collections.abc import Callable, Sequence
from functools import partial

from oslo_config import cfg
from oslo_upgradecheck import common_checks, upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result

from placement import conf
from placement.cmd import advice
from placement.db import lacking, models
from placement.objects import online_migration, own_table
from placement.objects.own_table import Fault
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.serving import command, pipe, upgrade
from placement_foundation.serving.program import Program

PROGRAM = "placement-status"
# Above the exit codes of checks.
NOT_CHECKED = 255

ADVICE = "Run the command `placement-manage db online_data_migrations`."
NO_OWN_TABLES = (
    "There are none yet. The Placement API works without, but slower. Run the command "
    "`placement-manage db sync` when no process of OpenStack Placement is left."
)


class Checks(upgradecheck.UpgradeCommands):
    """The checks, and their order."""

    def __init__(self, config: cfg.ConfigOpts) -> None:
        super().__init__()
        self._config = config
        self._database: Database | None = None
        services = [
            (f"Database Of {each.name}", partial(_check_service, each))
            for each in upgrade.list_programs()
        ]
        self._upgrade_checks = (*self._upgrade_checks, *services)

    def check_schema(self) -> Result:
        """Check that the shared tables have all that this release reads and writes."""
        missing = self._connect().read(lacking.list_missing)
        if missing:
            return Result(
                Code.FAILURE,
                f"The database lacks {', '.join(missing)}. Run the command "
                "`placement-manage db sync`.",
            )
        return Result(Code.SUCCESS)

    def check_roots(self) -> Result:
        """Check that each resource provider has a root."""
        if self._connect().read(online_migration.has_providers_without_root):
            return Result(
                Code.FAILURE,
                "There is at least one resource provider table record which misses "
                f"its root provider id. {ADVICE}",
            )
        return Result(Code.SUCCESS)

    def check_consumers(self) -> Result:
        """Check that each consumer with allocations has a record."""
        count = self._connect().read(online_migration.count_incomplete_consumers)
        if count:
            return Result(
                Code.WARNING,
                f"There are {count} incomplete consumers table records for existing "
                f"allocations. {ADVICE}",
            )
        return Result(Code.SUCCESS)

    def check_policy_file(self) -> Result:
        """Check that the policy file, if there is one, is YAML."""
        return common_checks.check_policy_json(self, self._config)

    def check_own_tables(self) -> Result:
        """Check that the tables that only this service has can be used.

        A database of OpenStack Placement has none, and nothing is wrong with it.
        """
        faults = self._connect().read(own_table.list_faults)
        tables = models.OWN.sorted_tables
        if list(faults.values()) == [Fault.MISSING] * len(tables):
            return Result(Code.SUCCESS, NO_OWN_TABLES)
        if faults:
            return Result(
                Code.WARNING,
                f"{' '.join(faults)} "
                "The Placement API works without, but slower. "
                "The operator's guide says which rights the database user needs.",
            )
        return Result(Code.SUCCESS)

    def close(self) -> None:
        """Close the database."""
        if self._database:
            self._database.engine.dispose()

    def _connect(self) -> Database:
        if self._database is None:
            self._database = storage.connect(conf.database_settings(self._config))
        return self._database

    _upgrade_checks: tuple[tuple[str, Callable[["Checks"], Result]], ...] = (
        ("Database Schema", check_schema),
        ("Missing Root Provider IDs", check_roots),
        ("Incomplete Consumers", check_consumers),
        ("Policy File JSON to YAML Migration", check_policy_file),
        ("Tables Of This Service", check_own_tables),
    )


def _check_service(of: Program, checks: Checks) -> Result:
    """Check that a service beside Placement can serve with this release."""
    fault = upgrade.find_fault(of)
    return Result(Code.FAILURE if fault else Code.SUCCESS, fault)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks, print their results, and return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if command.completes(given, PROGRAM, main, "", "upgrade"):
        return 0
    config = cfg.ConfigOpts()
    conf.register(config)
    checks = Checks(config)
    upgradecheck.register_cli_options(config, checks)
    try:
        config(given, project=conf.PROJECT, prog=PROGRAM)
    except command.TROUBLE as exc:
        command.complain(PROGRAM, exc, config)
        if isinstance(exc, cfg.RequiredOptError):
            advice.print_way_on(PROGRAM, config, given)
        return 1
    try:
        with pipe.dropping_the_rest():
            exit_code: int = config.command.action_fn()
            return exit_code
    except command.TROUBLE as exc:
        command.complain(PROGRAM, exc, config)
        return NOT_CHECKED
    finally:
        checks.close()


if __name__ == "__main__":
    sys.exit(main())
