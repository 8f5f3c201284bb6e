"""A row of the route table, the call that its handler gets, and its reply."""

import dataclasses
import datetime
import enum
import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import sqlalchemy as sa
import webob

from placement_foundation import errors
from placement_foundation.context import RequestContext
from placement_foundation.database.origin import Origin
from placement_foundation.database.storage import Database
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import Described, Json, Schema, View
from placement_foundation.http.version import ByVersion, Version
from placement_foundation.observing import telemetry

S = TypeVar("S")
C = TypeVar("C")
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Call(Generic[S, C]):
    """A request, checked and parsed: what a handler gets.

    ``database`` begins transactions on behalf of the request, see ``read`` and
    ``write``; ``origin`` is the request, as records of its writes name it.
    ``context`` is the same for all handlers of the service. ``load``
    returns, in a transaction, the row that the path names. ``subject`` is what
    ``parse_path`` made of the path, if that names nothing that is stored, and ``path``
    has the parameters of the path as strings. ``query`` is what the row's ``query``
    parsed from the query string; ``body`` is a document that the row's schema has
    accepted. ``asking`` is the caller, and ``may`` returns whether another rule of the
    policy lets them in as well. ``knows`` returns whether the caller already has the
    answer that is based on something (see ``Reply``). ``store`` renders a large reply
    bit by bit onto the disk, in the row's ``formats``: in the transaction, so that its
    value may be an iterator that still reads. ``must_end`` returns whether a handler
    that waits for news must answer now.
    """

    database: Database
    origin: Origin
    context: C
    load: Callable[[sa.Connection], Any]
    subject: S
    path: Mapping[str, str]
    query: Any
    body: Json
    asking: RequestContext | None
    may: Callable[[str], bool]
    knows: Callable[[str | None], bool]
    store: Callable[["Reply"], webob.Response]
    must_end: Callable[[], bool]

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` in a transaction that reads one snapshot; maybe repeatedly."""
        return self.database.read(work)

    def fetch(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work``, which executes one query, without a transaction around it."""
        return self.database.fetch(work)

    def write(self, work: Callable[[Any], T]) -> T:
        """Run ``work`` in a transaction until it commits."""
        return self.database.write(work)


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a handler.

    ``location`` is a path of the API. ``modified`` is when the value last changed, in
    UTC. ``created`` says that an operation that finds or creates something created it:
    the status is then 201, whatever the row says.

    ``following`` has the parameters of the query that change in the request for the
    next page, to which the header ``Link`` points.

    ``basis`` is all that the answer depends on, besides the request: as long as it is
    the same, the same request gets the same answer. It makes the ``ETag``; None means
    that the answer has none. If the caller ``knows`` it, the reply is ``unchanged``: it
    has no value, and its status is 304.
    """

    value: Any = None
    location: str | None = None
    modified: datetime.datetime | None = None
    created: bool = False
    following: Mapping[str, str] = dataclasses.field(default_factory=dict)
    basis: str | None = None
    unchanged: bool = False


# What handlers call a connection: they execute nothing by themselves.
Connection: TypeAlias = sa.Connection
# A reply that is rendered already.
Rendered: TypeAlias = webob.Response
Handler: TypeAlias = Callable[..., Reply | Rendered]
Renderer: TypeAlias = Described[Any] | Callable[[Any, View], Json]


def reading(work: Callable[..., Reply | Rendered]) -> Handler:
    """Return a handler all of whose work is done in one reading transaction.

    :param work: gets the call, the connection, and the row's flags
    """

    @functools.wraps(work)
    def handle(call: Call[Any, Any], **flags: bool) -> Any:
        return call.read(functools.partial(work, call, **flags))

    return handle


def writing(work: Callable[..., Reply]) -> Handler:
    """Return a handler all of whose work is done in one writing transaction.

    :param work: gets the call, what ``Call.write`` gives, and the row's flags
    """

    @functools.wraps(work)
    def handle(call: Call[Any, Any], **flags: bool) -> Any:
        return call.write(functools.partial(work, call, **flags))

    return handle


class Deviation(enum.Flag):
    """Where the steps of an operation differ from those of the others.

    ``MEDIA_TYPE_FIRST`` checks media types before the microversion, and ``BODY_FIRST``
    the body before the subject. ``ACCEPTS_ANYTHING``: the reply is JSON whatever the
    caller accepts. ``BODY_OPTIONAL``: without a body it is None, and one is read as
    JSON, whatever its content type.
    """

    NONE = 0
    MEDIA_TYPE_FIRST = enum.auto()
    BODY_FIRST = enum.auto()
    ACCEPTS_ANYTHING = enum.auto()
    BODY_OPTIONAL = enum.auto()


# Compared by identity, so that its editions can be cached.
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """A method of a path: everything about it except what it does.

    ``handler`` does it, from its first microversion on; it is called with a ``Call``
    and the row's ``flags`` as keywords, and opens the transaction that it needs.
    ``absent`` is the error before that microversion.

    ``policy`` is the rule that must let the caller in; None admits every caller.
    ``policy_project`` is the query parameter that names the project which the rule is
    about; None means the caller's own. ``owner`` returns the project that the subject
    belongs to: the rule must also let the caller in there.

    ``subject`` loads the row that the path names, from the connection and the
    parameters of the path: if there is none, that is answered before any fault of the
    query or the body. ``parse_path`` makes the subject from the parameters instead, if
    the path names nothing that is stored.

    ``query`` parses the query string; if there is none at a microversion, the query
    string is ignored. ``body`` is the schema of the body; if there is none, the body is
    ignored.

    ``status`` is the status of success, by default 200 with a reply and 204 without
    one, or 201 if the row ``may_create`` what it does not find and the handler did.
    ``reply`` renders the handler's value as JSON, and
    ``formats`` as other media types, as a sequence of documents for lines of JSON.
    Since not all of them have a place for it, the header ``Link`` names the next page.
    ``dated`` is the microversion from which the reply carries ``Cache-Control`` and,
    when the handler knows it, ``Last-Modified``. A ``tagged`` operation gives a
    ``basis`` with its replies, and heeds the entity tags of the caller.

    ``deviation`` is where the API has always been irregular. ``newest_by_default`` is
    for operations that no client from before microversions uses: a request without one
    gets the newest, and errors are those of the newest whichever it names.

    ``counted`` is the measure of the outcomes of requests that policy let in. A
    ``heavy`` operation may take seconds: few are answered at a time, and the next one
    is refused with 503. If only some of its requests take long, ``heavy`` is a function
    that returns whether one does, given the parsed query and body.
    """

    handler: ByVersion[Handler]
    policy: str | None
    policy_project: str | None = None
    owner: Callable[[Any], str] | None = None
    subject: ByVersion[Callable[..., Any]] | None = None
    parse_path: Callable[..., Any] | None = None
    query: ByVersion[Parser[Any] | Callable[[Pairs], Any]] | None = None
    body: ByVersion[Schema | None] | None = None
    flags: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    status: ByVersion[int] | None = None
    reply: ByVersion[Renderer | None] | None = None
    dated: tuple[int, int] | None = None
    absent: type[errors.ServiceError] = errors.NotFound
    deviation: Deviation = Deviation.NONE
    formats: Mapping[str, Renderer] = dataclasses.field(default_factory=dict)
    tagged: bool = False
    newest_by_default: bool = False
    counted: telemetry.Measure | None = None
    may_create: bool = False
    heavy: bool | Callable[[Any, Json], bool] = False


@dataclasses.dataclass(frozen=True, slots=True)
class Edition:
    """An operation as it is at one microversion. See the fields of ``Operation``.

    A field is None if there is nothing of the kind; without a handler, the operation
    does not exist.
    """

    operation: Operation
    version: Version
    handler: Handler | None
    subject: Callable[..., Any] | None
    query: Parser[Any] | Callable[[Pairs], Any] | None
    body: Schema | None
    flags: Mapping[str, bool]
    status: int
    renderer: Renderer | None
    is_dated: bool


@functools.cache
def edition(operation: Operation, version: Version) -> Edition:
    """Return an operation as it is at a microversion."""

    def at(history: ByVersion[T] | None) -> T | None:
        return history.at(version) if history else None

    renderer = at(operation.reply)
    return Edition(
        operation,
        version,
        at(operation.handler),
        at(operation.subject),
        at(operation.query),
        at(operation.body),
        {name: version >= first for name, first in operation.flags.items()},
        at(operation.status) or (200 if renderer else 204),
        renderer,
        operation.dated is not None and version >= operation.dated,
    )
