"""A row of the route table, what its handler gets, and what it answers."""

import dataclasses
import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import sqlalchemy as sa

from placement_foundation import errors
from placement_foundation.context import RequestContext
from placement_foundation.database.storage import Database
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import Described, Json, Schema, View
from placement_foundation.http.version import ByVersion, always
from placement_foundation.observing import telemetry

S = TypeVar("S")
C = TypeVar("C")

OK = always(200)


def _nothing(asked: str | None) -> bool:
    return False


@dataclasses.dataclass(frozen=True, slots=True)
class Call(Generic[S, C]):
    """A request, checked and parsed: what a handler gets.

    ``context`` is what the service gives to all its handlers; ``subject`` is what the
    path names, loaded; ``path`` has the parameters of the path as strings; ``query`` is
    what the row's ``query`` parsed from the query string; ``body`` is a document that
    the row's schema has accepted. ``asking`` is the caller, and ``may`` returns whether
    another rule of the policy lets them in as well. ``knows`` returns whether the
    caller already has the answer that is based on something (see ``Reply``).
    ``database`` is for rows with ``own_transactions`` alone.
    """

    connection: sa.Connection
    context: C
    subject: S
    path: Mapping[str, str]
    query: Any = None
    body: Json = None
    asking: RequestContext | None = None
    may: Callable[[str], bool] = _nothing
    knows: Callable[[str | None], bool] = _nothing
    database: Database | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """What a handler answers.

    ``location`` is a path of the API. ``modified`` is when the value last changed, in
    UTC. ``created`` says that an operation that finds or creates something created it:
    the status is then 201, whatever the row says.

    ``following`` is what replaces parameters of the query in a request for what
    follows, which the header ``Link`` names.

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


# Work to do after the transaction has ended, when the request holds no connection: what
# takes long, what waits for other services, or what needs several transactions.
Later: TypeAlias = Callable[[], Reply]
Handler: TypeAlias = Callable[..., Reply | Later]
Renderer: TypeAlias = Described[Any] | Callable[[Any, View], Json]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method of a path: everything about it except what it does.

    ``handler`` does it, from its first microversion on; it is called with a ``Call``
    and the row's ``flags`` as keywords. It may leave work for ``Later``, after the
    transaction has ended. ``absent`` is the error before that microversion.

    ``policy`` is the rule that must let the caller in; None admits everybody.
    ``policy_project`` is the query parameter that names the project which the rule is
    about; None means the caller's own. ``owner`` returns the project that the subject
    belongs to: the rule must also let the caller in there.

    ``subject`` loads what the path names: it gets the connection, the parameters of the
    path (only those in ``subject_parameters``, if set), and ``subject_flags`` as the
    handler gets its own. Once nothing is wrong with the request, ``lock`` keeps others
    from changing the subject until the transaction ends, and returns it as it is then.
    If the path names nothing that is stored, ``parse_path`` makes the subject from its
    parameters.

    ``query`` parses the query string; if there is none at a microversion, the query
    string is ignored. ``body`` is the schema of the body; if there is none, the body is
    ignored. If it is ``body_optional`` and there is no body, it is None; if there is
    one, it is read as JSON, whatever its content type.

    ``status`` is the status of success, or 201 if the row ``may_create`` what it does
    not find and the handler did. ``reply`` renders the handler's value, and ``dated``
    is the microversion from which the reply carries ``Cache-Control`` and, when the
    handler knows it, ``Last-Modified``.

    ``media_type_first`` and ``body_first`` move a step: media types are checked before
    the microversion, the body before the subject. ``accepts_anything`` leaves a step
    out: the reply is JSON whatever the caller accepts.

    ``lines`` renders the handler's value in a second way, as a sequence of documents,
    for callers that want lines of JSON. Such a reply may be large: it is rendered bit
    by bit in the transaction, so the value may be an iterator that still reads, and so
    may be members of the document that ``reply`` renders; if the handler leaves it for
    later, after the transaction. It is stored on disk, and sent after the transaction
    has ended; compressed for callers that accept that.

    ``formats`` renders it for other media types, a sequence of documents for
    ``application/x-ndjson``; unlike ``lines``, after the transaction has ended. Since
    not all of them have a place for it, the header ``Link`` names what follows.

    A ``tagged`` operation gives a ``basis`` with its replies, and heeds what the caller
    knows.

    ``counted`` is the measure of the outcomes of requests that policy let in.

    A ``heavy`` operation may take seconds: it gets only some of the threads of a
    process, so that other operations always find one, and is refused with 503 when all
    of these are occupied. If only some of its requests take long, ``heavy`` is a
    function that returns whether one does, given the parsed query and body.

    ``newest_by_default`` is for operations that no client from before microversions
    uses: a request without one gets the newest, and errors are those of the newest
    whichever it asks for. An operation that ``changes_nothing`` only reads, whatever
    its method. A ``static`` one depends on nothing that is stored: it is answered
    without a transaction, and its handler gets None as the connection.

    An operation with ``own_transactions`` gets None as the connection, too, and the
    ``database``: its handler begins transactions by itself, one after the other, for
    work that takes long between reading and writing, and that begins again when what
    was read has changed. It has no subject.
    """

    handler: ByVersion[Handler]
    policy: str | None
    policy_project: str | None = None
    owner: Callable[[Any], str] | None = None
    subject: Callable[..., Any] | None = None
    subject_parameters: tuple[str, ...] | None = None
    lock: Callable[[sa.Connection, Any], Any] | None = None
    parse_path: Callable[..., Any] | None = None
    subject_flags: Mapping[str, tuple[int, int]] = dataclasses.field(
        default_factory=dict
    )
    query: ByVersion[Parser[Any] | Callable[[Pairs], Any]] | None = None
    body: ByVersion[Schema | None] | None = None
    body_optional: bool = False
    flags: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    status: ByVersion[int] = OK
    reply: ByVersion[Renderer | None] | None = None
    dated: tuple[int, int] | None = None
    absent: type[errors.ServiceError] = errors.NotFound
    media_type_first: bool = False
    body_first: bool = False
    accepts_anything: bool = False
    lines: Callable[[Any, View], Iterator[Json]] | None = None
    formats: Mapping[str, Renderer] = dataclasses.field(default_factory=dict)
    tagged: bool = False
    newest_by_default: bool = False
    counted: telemetry.Measure | None = None
    changes_nothing: bool = False
    may_create: bool = False
    static: bool = False
    own_transactions: bool = False
    heavy: bool | Callable[[Any, Json], bool] = False
