"""What two moments of the log of changes say of the trees between them."""

import pytest

from placement.objects import change_log
from placement.objects.change_log import TOKEN_LENGTH, LogPosition, listed_since

A, B, C, D = (letter * TOKEN_LENGTH for letter in "abcd")


def listed(*entries: str) -> str:
    """Return a list of changes, the newest first."""
    return "".join(f"{entry};" for entry in entries)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        pytest.param([f"{A} 1"], [f"{A} 1"], set(), id="the same moment"),
        pytest.param([f"{A} 1"], [f"{B} 2 3", f"{A} 1"], {"2", "3"}, id="one write"),
        pytest.param(
            [f"{A} 1"],
            [f"{C} 2 5", f"{B} 2", f"{A} 1"],
            {"2", "5"},
            id="a tree that two writes have changed",
        ),
        pytest.param([f"{B} 2 3", f"{A} 1"], [f"{A} 1"], None, id="an earlier moment"),
        pytest.param(
            [f"{A} 1"], [f"{C} 2", f"{B} *", f"{A} 1"], {"2", "*"}, id="all trees"
        ),
        pytest.param([f"{A} 1"], [f"{C} 2", f"{B} 3"], None, id="too many since"),
        pytest.param(
            [f"{A} 1"], [f"{B} 2", A[:-1]], None, id="a list that was cut off"
        ),
    ],
)
def test_what_a_list_has_since_a_moment(
    before: list[str], after: list[str], changed: set[str] | None
) -> None:
    assert listed_since(listed(*before), listed(*after)) == changed


def test_trees_that_have_changed_are_named_at_a_later_and_an_earlier_moment() -> None:
    lists = [listed(f"{A} {shard}") for shard in range(change_log.ROWS)]
    before = LogPosition(lists)
    later = {3: listed(f"{B} 3 259", lists[3][:-1]), 4: f"{B} 4;{A} 4;"}
    earlier = {shard: lists[shard] for shard in later}
    assert before.changed(later) == ({3, 259, 4}, [], False)
    assert before.replace(later).changed(earlier) == ({3, 259, 4}, [], False)


def test_shards_of_which_too_much_has_changed_are_named() -> None:
    lists = [listed(f"{A} {shard}") for shard in range(change_log.ROWS)]
    # One list is too short, one says that all have changed, and names are no trees.
    later = {
        3: listed(f"{C} 3"),
        4: listed(f"{B} 4", f"{A} 4"),
        5: listed(f"{B} *", f"{A} 5"),
        change_log.NAMES: listed(f"{B} *"),
    }
    assert LogPosition(lists).changed(later) == ({4}, [3, 5], True)
