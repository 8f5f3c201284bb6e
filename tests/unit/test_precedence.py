"""Short requests go first: what takes long rests while they are being answered."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from placement_foundation.precedence import (
    MOST_COUNTED,
    MOST_RESTED,
    REST,
    SLICE,
    Precedence,
)
from tests.answering import being_answered


class Processor:
    """A clock of the wall and one of the processor, and the pauses of all threads."""

    def __init__(self) -> None:
        self.now = 0.0
        self.computed = 0.0
        self.pauses: list[float] = []

    def compute(self, seconds: float) -> None:
        self.computed += seconds
        self.now += seconds

    def make(self) -> Precedence:
        return Precedence(lambda: self.computed, lambda: self.now, self.pauses.append)


@pytest.fixture
def processor() -> Processor:
    return Processor()


def work(processor: Processor, rules: Precedence, seconds: float) -> None:
    """Serve a request that takes long."""
    with rules.request():
        rules.stand_back()
        processor.compute(seconds)
        rules.give_way()


def test_work_rests_while_a_request_is_answered(processor: Processor) -> None:
    rules = processor.make()
    with being_answered(rules):
        work(processor, rules, 2 * SLICE)
    assert processor.pauses == [pytest.approx(REST * 2 * SLICE)]
    work(processor, rules, 2 * SLICE)
    assert len(processor.pauses) == 1


def test_alone_it_does_not_rest(processor: Processor) -> None:
    rules = processor.make()
    work(processor, rules, 1)
    assert processor.pauses == []


def test_nobody_rests_for_work_that_takes_long(processor: Processor) -> None:
    rules = processor.make()
    with rules.request():
        rules.stand_back()
        with ThreadPoolExecutor(1) as others:
            others.submit(work, processor, rules, 1).result()
    assert processor.pauses == []


def test_a_short_request_never_rests(processor: Processor) -> None:
    rules = processor.make()
    with being_answered(rules):
        with rules.request():
            processor.compute(1)
            rules.give_way()
        # Nor does what is no request at all.
        rules.give_way()
    assert processor.pauses == []


def test_all_work_together_rests_so_much_longer_than_it_computes(
    processor: Processor,
) -> None:
    rules = processor.make()
    with being_answered(rules):
        # The clocks stand still while they rest, as if all of them did so at once.
        for _ in range(3):
            work(processor, rules, 2 * SLICE)
    passed = 2 * 2 * SLICE
    assert processor.pauses[-1] == pytest.approx(3 * REST * 2 * SLICE - passed)


def test_work_pays_little_for_the_time_when_nobody_waited(
    processor: Processor,
) -> None:
    rules = processor.make()
    with rules.request():
        rules.stand_back()
        processor.compute(1)
        with being_answered(rules):
            rules.give_way()
            rules.give_way()
    assert processor.pauses == [pytest.approx(REST * MOST_COUNTED)]


def test_work_does_not_rest_where_others_wait_for_it(processor: Processor) -> None:
    rules = processor.make()
    with being_answered(rules), rules.request():
        rules.stand_back()
        with rules.hurry():
            processor.compute(2 * SLICE)
            rules.give_way()
        assert processor.pauses == []
        processor.compute(2 * SLICE)
        assert list(rules.rest_between("ab")) == ["a", "b"]
        assert len(processor.pauses) == 1


def test_what_a_transaction_computes_is_not_rested_for(processor: Processor) -> None:
    rules = processor.make()
    with being_answered(rules), rules.request():
        rules.stand_back()
        with rules.hurry():
            processor.compute(1)
        rules.give_way()
    assert processor.pauses == []


def test_work_rests_for_its_part_of_the_time_only(processor: Processor) -> None:
    rules = processor.make()
    with being_answered(rules), rules.request():
        rules.stand_back()
        rules.rest_within(3 * SLICE)
        processor.compute(2 * SLICE)
        rules.give_way()
        assert processor.pauses == [pytest.approx(SLICE)]
        processor.compute(2 * SLICE)
        rules.give_way()
        assert len(processor.pauses) == 1
    work(processor, rules, MOST_RESTED + 1)
    with being_answered(rules):
        work(processor, rules, MOST_RESTED + 1)
        assert len(processor.pauses) == 1
        work(processor, rules, 2 * SLICE)
    assert len(processor.pauses) == 2


def test_work_that_has_another_request_served_goes_on_resting(
    processor: Processor,
) -> None:
    rules = processor.make()
    with being_answered(rules), rules.request():
        rules.stand_back()
        with rules.request():
            pass
        processor.compute(2 * SLICE)
        rules.give_way()
    assert len(processor.pauses) == 1


def test_a_request_within_a_request_is_part_of_it(processor: Processor) -> None:
    rules = processor.make()
    with rules.request(), rules.request():
        pass
    with ThreadPoolExecutor(1) as others:
        others.submit(work, processor, rules, 1).result()
    assert processor.pauses == []


def test_a_request_that_fails_is_over(processor: Processor) -> None:
    rules = processor.make()
    with pytest.raises(ZeroDivisionError), rules.request():
        raise ZeroDivisionError
    work(processor, rules, 1)
    assert processor.pauses == []
