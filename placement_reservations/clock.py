"""The time: UTC without a zone, as the tables keep it. Tests bring their own clock."""

import datetime
import time

from oslo_utils.timeutils import utcnow

MINUTE = datetime.timedelta(minutes=1)


class Clock:
    """The clock of the machine."""

    def now(self) -> datetime.datetime:
        """Return the current time."""
        return utcnow()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def whole_minute(moment: datetime.datetime) -> datetime.datetime:
    """Return a time without its seconds."""
    return moment.replace(second=0, microsecond=0)
