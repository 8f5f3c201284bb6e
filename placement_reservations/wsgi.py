"""The service for servers that import it: ``placement_reservations.wsgi``.

Its events are run elsewhere: by ``placement-reservations events``.
"""

from placement_reservations import app

application = app.start_from_environment()
