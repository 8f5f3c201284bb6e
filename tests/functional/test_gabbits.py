"""The API's behaviour, as the stories in gabbits/ describe it."""

import unittest
from pathlib import Path

import pytest
from gabbi import handlers, suitemaker, utils

from placement_foundation.database.storage import Database
from tests.functional import fixtures

GABBITS = Path(__file__).parents[2] / "gabbits"
STORIES = sorted(path.stem for path in GABBITS.glob("*.yaml"))


@pytest.mark.parametrize("story", STORIES)
def test_the_story_works_as_written(story: str, database: Database) -> None:
    fixtures.set_stage(database)
    result = unittest.TestResult()
    suite = load(story)
    suite.run(result)
    told = [f"{test}\n{trace}" for test, trace in result.failures + result.errors]
    assert not told, "\n".join(told)
    assert result.testsRun == suite.countTestCases()
    assert not result.skipped, f"stories are told to the end: {result.skipped}"


def load(story: str) -> unittest.TestSuite:
    """Return a story as a suite that talks to the application on the stage."""
    path = GABBITS / f"{story}.yaml"
    suite: unittest.TestSuite = suitemaker.test_suite_from_dict(
        unittest.defaultTestLoader,
        story,
        utils.load_yaml(yaml_file=str(path)),
        str(GABBITS),
        "placement.example.org",
        None,
        fixtures,
        lambda: fixtures.perform,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
    )
    return suite
