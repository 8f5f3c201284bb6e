"""Where a service writes its log."""

import logging

from oslo_config import cfg
from oslo_log import log


def set_up_logging(config: cfg.ConfigOpts, service: str) -> None:
    """Log as the options say: to stderr, if they name no destination."""
    places = ("log_file", "log_dir", "use_syslog", "use_journal")
    if not any(getattr(config, place) for place in places):
        # The library would take stdout, which belongs to the web server.
        config.set_default("use_stderr", True)
    log.setup(config, service)
    logging.captureWarnings(True)
