"""Settings for gunicorn: ``gunicorn --config gunicorn.conf.py``."""

import multiprocessing
import os

wsgi_app = "placement.wsgi.api:application"
bind = ["0.0.0.0:8778"]

# Each process connects to the database by itself. A process that replaces another one
# starts without it: everything to be loaded is loaded before the processes are forked.
preload_app = True
# A container may have fewer processors than the machine, and does not know.
workers = int(os.environ.get("WEB_CONCURRENCY") or multiprocessing.cpu_count())
# Clients that send or read slowly keep no thread waiting.
worker_class = "placement_foundation.serving.worker.Worker"
threads = 8
# Connections of each process. If there are more, the oldest idle ones are closed.
worker_connections = 1000
timeout = 60
graceful_timeout = 30

# For other worker classes: many groups of resources make a long query, and clients must
# not say where the service is mounted.
limit_request_line = 0
forwarder_headers = ""

# The service writes a line about each request by itself.
accesslog = None
errorlog = "-"
proc_name = "placement-api"
# The service manager does what this would be used for.
control_socket_disable = True


def child_exit(server, worker):
    """Remove a process that has ended from the metrics."""
    from placement_foundation.observing import metrics

    metrics.forget(worker.pid)
