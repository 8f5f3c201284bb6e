"""What this service counts, besides what every service does."""

from placement_foundation.observing.telemetry import Kind, Measure

# The names of all metrics of this service begin with it.
PREFIX = "placement_reservations_"

EVENTS = Measure(
    "events",
    Kind.COUNTER,
    "Attempts to run an event: done, put_off to be tried again, or failed.",
    ("event", "outcome"),
)
OVERDUE_EVENTS = Measure(
    "events_overdue",
    Kind.SIZE,
    "Events that were still waiting when the last turn was over.",
)
REPAIRS = Measure(
    "repairs",
    Kind.COUNTER,
    "Inventories of active leases that were missing or wrong in Placement, by what was "
    "found: no_provider, no_inventory, or wrong_inventory.",
    ("found",),
)
LEASES_DEGRADED = Measure(
    "leases_degraded",
    Kind.SIZE,
    "Leases that lack something they were promised.",
)
SLOTS_OVERUSED = Measure(
    "slots_overused",
    Kind.SIZE,
    "Servers of active leases beyond the slots promised to them.",
)

MEASURES = (EVENTS, OVERDUE_EVENTS, REPAIRS, LEASES_DEGRADED, SLOTS_OVERUSED)
