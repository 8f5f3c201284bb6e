# What a newcomer needs: `make serve` and `make test`. The rest is in tox.ini.

PYTHON ?= python3
VENV ?= .venv

.PHONY: serve serve-nodes test clean

serve: $(VENV)/bin/placement-api
	$(VENV)/bin/placement-api $(ARGS)

serve-nodes: $(VENV)/.consumers
	$(VENV)/bin/placement-nodes serve $(ARGS)

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

# What programs that use Placement need besides.
$(VENV)/.consumers: setup.cfg | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable '.[consumers]'
	touch $@

$(VENV)/bin/tox: | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet 'tox>=4.14'
