"""What a request that does nothing costs, by step."""

import contextlib
import dataclasses
import functools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import webob

from benchmarks import client
from placement import app, conf, policy
from placement.operation import context_of
from placement_foundation.context import RequestContext
from placement_foundation.database.storage import Database
from placement_foundation.http import application, middleware
from placement_foundation.http.answer import Answer
from placement_foundation.http.application import Application
from placement_foundation.http.middleware import Surrounded
from placement_foundation.http.operation import Call, Operation, Reply
from placement_foundation.http.version import always
from placement_foundation.serving import interpreter

PATH = "/nothing"
REST = "everything else"
# The functions of each step: where each is, and its name.
STEPS: dict[str, list[tuple[Any, str]]] = {
    "request id, log, identity": [(Surrounded, "__call__")],
    "context": [(RequestContext, "from_environ")],
    "routing": [(Application, "_find")],
    "negotiation": [(Application, "_negotiate")],
    "sizes and media types": [
        (application, "_check_sizes"),
        (application, "_check_body_headers"),
        (application, "_check_gates"),
    ],
    "policy": [(Application, "_check_policy")],
    "query and body": [(application, "_parse")],
    "response": [(Answer, "render"), (application, "_add_headers")],
    "sending": [(webob.Response, "__call__")],
    REST: [(Application, "__call__")],
}


class Stopwatch:
    """Adds up the time of each step, without the time of the steps within it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._within = [0.0]

    def time(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and adds its time to a step."""

        @functools.wraps(function, updated=())
        def timed(*args: Any, **options: Any) -> Any:
            self._within.append(0.0)
            began = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                took = time.perf_counter() - began
                self.seconds[step] += took - self._within.pop()
                self._within[-1] += took

        return timed


def measure(database: Database, times: int) -> dict[str, float]:
    """Return the median time of each step of a request, in microseconds."""
    config = client.configure()
    nothing = Operation(
        handler=always(_do_nothing),
        policy="placement:resource_providers:list",
        reply=always(lambda value, view: value),
        dated=(1, 15),
    )
    served = Application(
        dataclasses.replace(app.SERVICE, routes={PATH: {"GET": nothing}}),
        database,
        context_of(conf.settings(config)),
        policy.make_enforcer(config),
    )
    surrounded = Surrounded(middleware.surround(served, config, app.SURROUNDINGS))
    interpreter.settle()
    took = defaultdict(list)
    with _timed() as watch:
        for _ in range(times):
            watch.seconds.clear()
            # A server makes the environment, so this is not measured.
            environment = webob.Request.blank(PATH, headers=client.HEADERS).environ
            surrounded(environment, lambda status, headers, *error: lambda data: None)
            for step in STEPS:
                took[step].append(watch.seconds[step] * 1e6)
    return {step: statistics.median(each) for step, each in took.items()}


def _do_nothing(call: Call[None, Any]) -> Reply:
    return Reply({})


@contextlib.contextmanager
def _timed() -> Iterator[Stopwatch]:
    watch = Stopwatch()
    with contextlib.ExitStack() as stack:
        for step, functions in STEPS.items():
            for owner, name in functions:
                timed = watch.time(step, getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, timed))
        yield watch


def report(steps: dict[str, float]) -> None:
    """Print the steps, and their sum."""
    for step, microseconds in {**steps, "in all": sum(steps.values())}.items():
        print(f"{step:30} {microseconds:8.1f} µs", flush=True)
