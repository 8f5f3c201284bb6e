"""Whether services are ready for this release: ``placement-status upgrade check``."""

import contextlib
from importlib import metadata

from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.serving import command, program
from placement_foundation.serving.program import Program, Unusable

# Packages beside Placement name their programs in this group of entry points.
GROUP = "placement.services"


def list_programs() -> list[Program]:
    """Return the programs of the services that are configured on this machine, by name.

    Any other has an embedded database at most, which it migrates itself.
    """
    programs: list[Program] = []
    for entry_point in metadata.entry_points(group=GROUP):
        # If a package that it needs is not installed, it does not run here.
        with contextlib.suppress(ImportError):
            programs.append(entry_point.load())
    return sorted(filter(_is_configured, programs), key=lambda each: each.name)


def find_fault(of: Program) -> str | None:
    """Return why a service cannot serve, and what to do; None if nothing is wrong."""
    try:
        config = program.configure(of, None)
        settings = option.database_settings(config[of.database_group])
        database = storage.connect(settings)
        try:
            revision = of.schema.version(database)
        finally:
            database.engine.dispose()
    except Unusable as exc:
        return f"Its configuration cannot be used: {exc}"
    except command.TROUBLE as exc:
        return f"Its database cannot be used: {command.describe(exc)}"
    if revision == of.schema.head:
        return None
    state = f"revision {revision}" if revision else "no tables"
    return (
        f"Its database has {state}, and this release needs revision {of.schema.head}. "
        f"Run the command `{of.sync_command}`."
    )


def _is_configured(of: Program) -> bool:
    """Return whether a service is configured on this machine, well or badly."""
    try:
        return not program.is_embedded(of, program.configure(of, None))
    except Unusable:
        return True
