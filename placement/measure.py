"""The measures of Placement, besides those of every service."""

from placement_foundation.observing.telemetry import NUMBERS, SECONDS, Kind, Measure

# The names of all metrics of this service begin with it.
PREFIX = "placement_"

CLAIMS = Measure(
    "claims",
    Kind.COUNTER,
    "Writes of allocations, by outcome.",
    ("outcome", "code"),
)
PLACEMENTS = Measure(
    "placements",
    Kind.COUNTER,
    "Requests for placements, by result: placed, partly, existed, dry_run, no_room, "
    "refused or failed.",
    ("result",),
)
PLACEMENT_SECONDS = Measure(
    "placements_duration_seconds",
    Kind.HISTOGRAM,
    "Time that requests for placements took, choosing and writing.",
    edges=SECONDS,
)
LEASES_EXPIRED = Measure(
    "leases_expired",
    Kind.COUNTER,
    "Leases whose time had come, so that the allocations of their consumers ended.",
)
JOURNAL_ENTRIES = Measure(
    "journal_entries",
    Kind.COUNTER,
    "Entries that were written into the journal, by type.",
    ("type",),
)
JOURNAL_READERS = Measure(
    "journal_readers_waiting",
    Kind.LEVEL,
    "Readers of the feed of changes that wait for something to change.",
)
CANDIDATE_HOSTS = Measure(
    "candidates_hosts",
    Kind.HISTOGRAM,
    "Hosts, or rather trees, that a search for allocation candidates looked at.",
    edges=NUMBERS,
)
CANDIDATE_ANSWERS = Measure(
    "candidates_answers",
    Kind.HISTOGRAM,
    "Allocation candidates in an answer.",
    edges=NUMBERS,
)
SEARCHES_CUT = Measure(
    "searches_cut",
    Kind.COUNTER,
    "Searches for allocation candidates that ended with their budget.",
)
FOREST_REFRESHES = Measure(
    "forest_refreshes",
    Kind.COUNTER,
    "How often the forest in memory was refreshed: all of it, or only the changes.",
    ("extent",),
)
FOREST_CORRECTIONS = Measure(
    "forest_corrections",
    Kind.COUNTER,
    "How often the forest in memory lacked changes that were not recorded, by what "
    "found that: sums over the tables, or reading.",
    ("found_by",),
)
FOREST_TREES = Measure(
    "forest_trees",
    Kind.SIZE,
    "Trees that are kept in memory.",
)

# All of the above.
MEASURES = tuple(each for each in vars().values() if isinstance(each, Measure))
