"""What the agent counts. The service has only the measures of every service."""

from placement_foundation.observing.telemetry import Kind, Measure

# The names of all metrics of the service, and of the agent, begin with these.
PREFIX = "placement_nodes_"
SYNC_PREFIX = "placement_nodes_sync_"

PASSES = Measure(
    "passes",
    Kind.COUNTER,
    "Passes over the nodes: complete, partial if some nodes failed, or skipped if the "
    "nodes could not be read.",
    ("outcome",),
)
NODES = Measure(
    "nodes",
    Kind.SIZE,
    "Nodes by the outcome of the last pass: synchronised, left_out, failed, or "
    "unanswered if they wait for Placement; the last are among the failed.",
    ("outcome",),
)
CHANGES = Measure(
    "changes",
    Kind.COUNTER,
    "Providers that were changed or removed.",
    ("kind",),
)
REMOVALS_HELD = Measure(
    "removals_held",
    Kind.SIZE,
    "Providers that are not removed, as too many nodes are missing at once.",
)
LAST_PASS = Measure(
    "last_complete_pass_timestamp_seconds",
    Kind.SIZE,
    "When the last pass was over in which no node failed, in seconds since 1970.",
)

SYNC_MEASURES = (PASSES, NODES, CHANGES, REMOVALS_HELD, LAST_PASS)
