"""Advice of the commands when no database is configured."""

import shlex
import sys
from collections.abc import Sequence

from oslo_config import cfg

VARIABLE = "OS_PLACEMENT_DATABASE__CONNECTION"


def print_way_on(name: str, config: cfg.ConfigOpts, given: Sequence[str]) -> None:
    """Print how to name a database for a command.

    :param given: the arguments of the command
    """
    # It takes the service, with its server.
    from placement.cmd import api
    from placement_foundation.serving import program

    files = ", ".join(config.config_file) or "there are none"
    url = shlex.quote(program.embedded_url(api.PROGRAM))
    print(
        "",
        f"No database is configured: {VARIABLE} is not set, and",
        f"  these files do not name one: {files}",
        "",
        "Name a configuration file that has it:",
        f"  {shlex.join([name, '--config-file', 'PATH', *given])}",
        "or, for the database that the service makes where none is configured:",
        f"  {VARIABLE}={url} {shlex.join([name, *given])}",
        sep="\n",
        file=sys.stderr,
    )
