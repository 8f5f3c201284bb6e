"""What an operator can do about a command that does not know which database to use."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from placement_foundation import option


def find_database(
    program: str,
    project: str,
    group: str,
    url: str,
    files: Sequence[str],
    given: Sequence[str],
    environment: Mapping[str, str],
) -> Iterator[str]:
    """Yield lines that say where a database was looked for, and how to name one.

    :param project: the name of the service in those of its files and directories
    :param group: the section of the options for the database
    :param url: the embedded database, which the service makes where none is configured
    :param files: the configuration files that were read
    :param given: the arguments of the command
    """
    variable = f"OS_{group.upper()}__CONNECTION"
    places = ", ".join(_list_places(project, environment))
    yield ""
    yield f"No database is configured: {variable} is not set, and"
    if files:
        yield f"  these files do not name one: {', '.join(files)}"
    else:
        yield f"  there is no {project}.conf or {program}.conf in {places}"
    directory = option.directory_variable(project)
    if environment.get(directory, "").strip():
        yield f"  ({directory} is for the service alone, not for commands)"
    command = shlex.join([program, *given])
    yield ""
    yield "Name a configuration file that has it:"
    yield f"  {shlex.join([program, '--config-file', 'PATH', *given])}"
    yield "or, for the database that the service makes where none is configured:"
    yield f"  {variable}={shlex.quote(url)} {command}"


def _list_places(project: str, environment: Mapping[str, str]) -> list[str]:
    """Return the directories in which oslo.config looks for files."""
    snap = [
        str(Path(environment[name], "etc", project))
        for name in ("SNAP_COMMON", "SNAP")
        if environment.get(name)
    ]
    home = os.path.expanduser("~")
    return [f"{home}/.{project}", home, f"/etc/{project}", "/etc", *snap]
