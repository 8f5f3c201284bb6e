"""Where the log goes."""

import logging
import re
import sys
from pathlib import Path

import pytest

from placement import conf
from placement_foundation.observing.log import set_up_logging
from tests import settings


@pytest.fixture
def root() -> logging.Logger:
    return logging.getLogger()


def streams(root: logging.Logger) -> list[object]:
    return [getattr(handler, "stream", None) for handler in root.handlers]


def test_the_log_goes_to_stderr(root: logging.Logger) -> None:
    set_up_logging(settings.make_config(), conf.PROJECT)
    assert streams(root) == [sys.stderr]


def test_it_goes_to_a_file_instead_if_there_is_one(
    root: logging.Logger, tmp_path: Path
) -> None:
    path = tmp_path / "placement.log"
    config = settings.make_config({("DEFAULT", "log_file"): str(path)})
    set_up_logging(config, conf.PROJECT)
    logging.getLogger("placement.requestlog").info("here")
    assert sys.stderr not in streams(root)
    assert re.search(r"INFO placement.requestlog \[.*\] here", path.read_text())
    for handler in root.handlers:
        handler.close()
