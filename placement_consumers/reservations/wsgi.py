"""The service for servers that import it: ``placement_consumers.reservations.wsgi``.

Its events are run elsewhere: by ``placement-reservations events``.
"""

from placement_consumers.reservations import app

application = app.start_from_environment()
