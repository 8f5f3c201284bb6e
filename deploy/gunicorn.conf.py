"""Settings of gunicorn: ``gunicorn --config gunicorn.conf.py``."""

import multiprocessing

wsgi_app = "placement.wsgi.api:application"
bind = ["0.0.0.0:8778"]

# Each process connects to the database by itself.
workers = multiprocessing.cpu_count()
worker_class = "gthread"
threads = 4
timeout = 60
graceful_timeout = 30
# Longer than the keep-alive of a proxy before it, so that the proxy hangs up first.
keepalive = 75

# Many groups of resources, or many aggregates, make a long query.
limit_request_line = 0

# The service writes a line about each request by itself.
accesslog = None
errorlog = "-"
proc_name = "placement-api"
# What this would be used for is the business of the service manager.
control_socket_disable = True
