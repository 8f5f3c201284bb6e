# Commands for newcomers; `make help` lists them. The rest is in tox.ini.

PYTHON ?= python3
VENV ?= .venv

.PHONY: help serve serve-nodes serve-reservations test clean

help:
	@echo 'make serve        serve the API at http://127.0.0.1:8778/; ARGS="--port 0" and others'
	@echo 'make serve-nodes  serve placement-nodes'
	@echo 'make serve-reservations  serve placement-reservations'
	@echo 'make test         run the tests on the embedded database'
	@echo 'make clean        remove what these have made'
	@echo 'It is installed in VENV=$(VENV), with PYTHON=$(PYTHON).'

serve: $(VENV)/bin/placement-api
	$(VENV)/bin/placement-api $(ARGS)

serve-nodes: $(VENV)/bin/placement-api
	$(VENV)/bin/placement-nodes serve $(ARGS)

serve-reservations: $(VENV)/bin/placement-api
	$(VENV)/bin/placement-reservations serve $(ARGS)

test: $(VENV)/bin/tox
	$(VENV)/bin/tox -e test

clean:
	rm -rf $(VENV) .tox build *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/bin/placement-api: setup.cfg | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable .
	touch $@

$(VENV)/bin/tox: | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet 'tox>=4.14'
