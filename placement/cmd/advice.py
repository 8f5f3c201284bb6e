"""What the commands say when no database is configured."""

import os
import sys
from collections.abc import Sequence

from oslo_config import cfg

from placement import conf


def print_way_on(name: str, config: cfg.ConfigOpts, given: Sequence[str]) -> None:
    """Print where a command has looked for a database, and how to name one.

    :param given: the arguments of the command
    """
    # Not before somebody needs advice: it takes the service, with its server.
    from placement.cmd import api
    from placement_foundation.serving import guidance, program

    lines = guidance.find_database(
        name,
        conf.PROJECT,
        api.PROGRAM.database_group,
        program.embedded_url(api.PROGRAM),
        config.config_file,
        given,
        os.environ,
    )
    print(*lines, sep="\n", file=sys.stderr)
