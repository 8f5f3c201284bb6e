"""Meanings of database errors: a lost race, a bad value, or a database in trouble."""

import sqlite3

import sqlalchemy as sa
from oslo_db import exception as db_exc

# SQL's serialization_failure, and PostgreSQL's deadlock_detected.
LOST_RACES = {"40001", "40P01"}
# The function of PostgreSQL that refuses a prepared statement if a migration has
# changed the types of its columns. The code of this error has other meanings, too.
PLAN_CHECK = "RevalidateCachedQuery"
# Another transaction held a lock for longer than this one waits: PostgreSQL's
# lock_not_available, and MySQL's codes for it.
BUSY_STATES = {"55P03"}
BUSY_NUMBERS = {1205, 3572}
# MariaDB and MySQL: another transaction has changed the row since this transaction
# looked; or a migration has changed a table, or is changing it.
CHANGED_NUMBERS = {1020, 1412, 1684}

# What PostgreSQL reports when it is not well: by class of the code, and by code.
# Connections; resources, such as connections and disk; operators, who stop or start it;
# system errors; no permission to connect. A read-only server; a statement that took too
# long; a transaction that waited too long for its client.
TROUBLED_CLASSES = {"08", "53", "57", "58", "28"}
TROUBLED_STATES = {"25006", "25P03", "25P04"}

# The same for MySQL and MariaDB: no connections left; a server that is starting,
# stopping, out of disk or memory, read-only, or a node cut off from its cluster, maybe
# in the middle of a commit; a client that has lost it; a statement that took too long
# or was ended.
TROUBLED_NUMBERS = {
    *(3, 23, 28),
    *(1021, 1030, 1037, 1038, 1040, 1041, 1042, 1043, 1044, 1045, 1047, 1053, 1077),
    *(1114, 1129, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1203, 1206, 1226, 1290),
    *(1317,),
    *(1792, 1836, 1927, 1969, 3024, 3169, 4031),
    *(2000, 2002, 2003, 2005, 2006, 2012, 2013, 2014, 2026, 2055),
}

# A node of a cluster reports this with various numbers.
CUT_OFF = "not connected to primary component"

# There is no such table: PostgreSQL's undefined_table, and MySQL's code for it.
NO_TABLE_STATE = "42P01"
NO_TABLE_NUMBER = 1146
# There is no such column: PostgreSQL's undefined_column, MySQL's and SQLite's words.
NO_COLUMN_STATE = "42703"
NO_COLUMN_NUMBER = 1054
NO_COLUMN_WORDS = ("no such column", "has no column named")

# The user has no right to do that with the table: PostgreSQL's insufficient_privilege,
# and MySQL's codes for it.
DENIED_STATE = "42501"
DENIED_NUMBERS = {1142, 1143, 1370}
# The transaction, or the server, only reads.
READ_ONLY_STATE = "25006"
READ_ONLY_NUMBERS = {1290, 1792, 1836}

# The user may not connect, or the database does not exist: waiting does not help.
# PostgreSQL reports it only in its message.
REFUSED_NUMBERS = {1044, 1045, 1049, 1698}
REFUSED_WORDS = ("authentication failed", "does not exist", "no pg_hba.conf entry")

# What SQLite reports when it is not well: no memory, read only, interrupted, input or
# output failed, corrupt, full, cannot be opened, locking failed, not a database.
TROUBLED_RESULTS = {7, 8, 9, 10, 11, 13, 14, 15, 26}

# What MySQL reports if a value is compared with a column that cannot hold its
# characters: a table that another service made may be in latin1.
FOREIGN_CHARACTERS = {1267, 1270, 1271}
# psycopg2's message about a string; it has no error class of its own.
NUL = "cannot contain NUL"


class LostRaceError(Exception):
    """Another transaction was faster, and this one has to begin again.

    This is for our own checks only: the database has its own errors for its conflicts.
    """


def is_lost_race(exc: Exception) -> bool:
    """Return whether a transaction failed only because another one was faster."""
    if isinstance(exc, LostRaceError):
        return True
    # A referenced row is read first, so it can only be missing if it was deleted since.
    if isinstance(
        exc, db_exc.DBDeadlock | db_exc.DBDuplicateEntry | db_exc.DBReferenceError
    ):
        return True
    return (
        is_busy(exc)
        or is_plan_spoilt(exc)
        or _state(exc) in LOST_RACES
        or _mysql_number(exc) in CHANGED_NUMBERS
    )


def is_plan_spoilt(exc: Exception) -> bool:
    """Return whether a migration has changed a table since a statement was prepared."""
    diagnosis = getattr(driver_error(exc), "diag", None)
    return getattr(diagnosis, "source_function", None) == PLAN_CHECK


def is_busy(exc: Exception) -> bool:
    """Return whether a transaction waited for a lock for as long as it may."""
    cause = driver_error(exc)
    if isinstance(cause, sqlite3.OperationalError):
        return "locked" in str(cause) or "busy" in str(cause)
    return _state(exc) in BUSY_STATES or _mysql_number(exc) in BUSY_NUMBERS


def is_missing_table(exc: Exception) -> bool:
    """Return whether a statement failed because a table does not exist."""
    return (
        isinstance(exc, db_exc.DBNonExistentTable)
        or _state(exc) == NO_TABLE_STATE
        or _mysql_number(exc) == NO_TABLE_NUMBER
    )


def is_unmigrated(exc: Exception) -> bool:
    """Return whether a statement failed because a table or a column does not exist."""
    cause = driver_error(exc)
    if isinstance(cause, sqlite3.OperationalError):
        missing = any(words in str(cause) for words in NO_COLUMN_WORDS)
        return missing or is_missing_table(exc)
    return (
        is_missing_table(exc)
        or _state(exc) == NO_COLUMN_STATE
        or _mysql_number(exc) == NO_COLUMN_NUMBER
    )


def is_denied(exc: Exception) -> bool:
    """Return whether a statement failed because the user has no right to do that."""
    return _state(exc) == DENIED_STATE or _mysql_number(exc) in DENIED_NUMBERS


def is_read_only(exc: Exception) -> bool:
    """Return whether a write failed in a transaction, or server, that only reads."""
    return _state(exc) == READ_ONLY_STATE or _mysql_number(exc) in READ_ONLY_NUMBERS


def is_unstorable(exc: Exception) -> bool:
    """Return whether a value is one that the database cannot store."""
    if isinstance(exc, db_exc.DBDataError | db_exc.DBInvalidUnicodeParameter):
        return True
    if _mysql_number(exc) in FOREIGN_CHARACTERS:
        return True
    cause = driver_error(exc)
    if isinstance(cause, ValueError) and NUL in str(cause):
        return True
    # Each driver has a class of that name, as Python's database API requires.
    return _has_ancestor(cause, "DataError")


def is_unavailable(exc: Exception) -> bool:
    """Return whether the database cannot be reached, or cannot work at the moment."""
    if isinstance(exc, sa.exc.TimeoutError | db_exc.DBConnectionError):
        return True
    cause = driver_error(exc)
    if isinstance(cause, sqlite3.Error):
        result: int = getattr(cause, "sqlite_errorcode", 0)
        return result & 0xFF in TROUBLED_RESULTS
    number = _mysql_number(exc)
    if number:
        return number in TROUBLED_NUMBERS or CUT_OFF in describe(exc).lower()
    state = _state(exc)
    if state:
        return state[:2] in TROUBLED_CLASSES or state in TROUBLED_STATES
    # A driver that got no answer at all has no code to report.
    return (
        is_lost_connection(exc)
        or _has_ancestor(cause, "OperationalError")
        or _has_ancestor(cause, "InterfaceError")
    )


def is_refused(exc: Exception) -> bool:
    """Return whether a server refuses all connections with these credentials."""
    said = describe(exc)
    return _mysql_number(exc) in REFUSED_NUMBERS or any(
        words in said for words in REFUSED_WORDS
    )


def is_lost_connection(exc: Exception) -> bool:
    """Return whether an established connection broke: a new one may work."""
    inner = getattr(exc, "inner_exception", None) or exc
    return bool(getattr(inner, "connection_invalidated", False))


def name_cause(exc: Exception) -> str:
    """Return why a transaction failed as one word out of a small set."""
    kinds = {
        "lost_connection": is_lost_connection,
        "busy": is_busy,
        "lost_race": is_lost_race,
        "unstorable": is_unstorable,
        "unavailable": is_unavailable,
    }
    return next((name for name, holds in kinds.items() if holds(exc)), "bug")


def describe(exc: BaseException) -> str:
    """Return the message of the driver in one line."""
    return " ".join(str(driver_error(exc)).split())


def driver_error(exc: BaseException) -> object:
    """Return the exception of the driver beneath those of oslo.db and SQLAlchemy."""
    inner = getattr(exc, "inner_exception", None) or exc
    return getattr(inner, "orig", None) or inner


def _state(exc: Exception) -> str | None:
    """Return the SQLSTATE that a driver reports."""
    cause = driver_error(exc)
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    return state if isinstance(state, str) else None


def _mysql_number(exc: Exception) -> int | None:
    """Return the number of an error of MySQL or MariaDB, None if it has none."""
    if not isinstance(exc, sa.exc.DBAPIError | db_exc.DBError):
        return None
    number = next(iter(getattr(driver_error(exc), "args", ())), None)
    return number if isinstance(number, int) else None


def _has_ancestor(cause: object, name: str) -> bool:
    return any(ancestor.__name__ == name for ancestor in type(cause).__mro__)
