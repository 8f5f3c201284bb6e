"""Settings of gunicorn: ``gunicorn --config gunicorn.conf.py``."""

import multiprocessing

wsgi_app = "placement.wsgi.api:application"
bind = ["0.0.0.0:8778"]

# Each process connects to the database by itself. One that takes another one's place
# does not need it for that: what there is to load is loaded before they part.
preload_app = True
workers = multiprocessing.cpu_count()
# Clients that send or read slowly keep no thread waiting.
worker_class = "placement_foundation.worker.Worker"
threads = 8
# Connections of each process. When there are more, the oldest that ask for nothing go.
worker_connections = 1000
timeout = 60
graceful_timeout = 30

# For who chooses another worker class: many groups of resources make a long query, and
# no client says where the service is mounted.
limit_request_line = 0
forwarder_headers = ""

# The service writes a line about each request by itself.
accesslog = None
errorlog = "-"
proc_name = "placement-api"
# What this would be used for is the business of the service manager.
control_socket_disable = True


def child_exit(server, worker):
    """Take a process that has ended out of the metrics."""
    from placement_foundation import metrics

    metrics.forget(worker.pid)
