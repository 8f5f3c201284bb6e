"""Settings for gunicorn: ``gunicorn --config gunicorn.conf.py``.

Put a proxy in front that reads whole requests first, such as nginx.conf or haproxy.cfg:
a client that sends or reads slowly keeps a thread.
"""

import multiprocessing
import os
import sys

from placement_foundation.serving.web_server import (  # noqa: F401
    child_exit,
    explain_failure,
    post_worker_init,
    when_ready,
)

# The application is loaded in this process: wrong options are one line, no traceback.
sys.excepthook = explain_failure
# Names that are no settings of gunicorn.
del sys, explain_failure

wsgi_app = "placement.wsgi.api:application"
bind = ["0.0.0.0:8778"]

# Each process connects to the database by itself. A process that replaces another one
# starts without it: everything to be loaded is loaded before the processes are forked.
preload_app = True
# A container may have fewer processors than the machine, and does not know.
workers = int(os.environ.get("WEB_CONCURRENCY") or multiprocessing.cpu_count())
worker_class = "gthread"
threads = 8
worker_connections = 1000
# Longer than the proxy keeps connections, so that it hangs up first.
keepalive = 75
timeout = 60
graceful_timeout = 30

# Many groups of resources make a long query, and a token may be long.
limit_request_line = 0
limit_request_field_size = 65536
# Clients must not say where the service is mounted.
forwarder_headers = ""
# The service answers methods that it does not know: 405.
permit_unconventional_http_method = True

# The service writes a line about each request by itself.
accesslog = None
errorlog = "-"
proc_name = "placement-api"
# The service manager does what this would be used for.
control_socket_disable = True
