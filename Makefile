# make run       start the app and print its address
# make test      every rule, sampled sweeps, one browser test a page; with `make lint` it is what CI runs
# make gpu       on a machine with a CUDA device: what Measure measures and real training steps, PASS or FAIL beside what is
#                predicted of them; eight minutes, into the folder measured. Without a package index, make gpu
#                WHEELS=folder uses torch and transformers of PYTHON and, from the folder, wheels of what it lacks:
#                babel, pydantic, pydantic_core, typing_inspection, annotated_types, nvidia_ml_py
# make test-all  those, then the long ones: whole sweeps, a team's servers, everything in a browser,
#                and the journeys there once more with Streamlit as it is; run before a change is called done
#                Both print their ten slowest tests and modules, and by name what needed a second try.
PYTHON ?= python3
PORT ?= 8501
BIN := .venv/bin
# The processes that tests start read what the first of them compiled.
export PYTHONDONTWRITEBYTECODE :=
# Arrays of a search come from the heap and stay there; fetched from the system each time they take half as long again.
export MALLOC_MMAP_THRESHOLD_ := 33554432
export MALLOC_TRIM_THRESHOLD_ := 268435456
PYTEST := $(BIN)/pytest -n 2 --dist worksteal --durations 10

.PHONY: run test test-all lint perf gpu screenshots format

run: .venv/run.stamp
	$(BIN)/streamlit run app.py --server.port $(PORT)

test: .venv/test.stamp
	$(BIN)/python tests/browser/chromium.py
	$(PYTEST) -m "not long"

test-all: test
	$(BIN)/python tests/team/ensure.py
	$(PYTEST) -m long
	NAPKIN_PATCHES=off $(PYTEST) -m "journey and not patched"

lint: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --threads 2
	$(BIN)/python -m tests.tools.audit

format: .venv/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

perf: .venv/test.stamp
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python tests/team/ensure.py
	$(BIN)/python -m tests.perf

ifdef WHEELS
gpu:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-index --no-deps --upgrade --target .wheels $(WHEELS)/*.whl
	PYTHONPATH=$(CURDIR)/.wheels$${PYTHONPATH:+:$$PYTHONPATH} $(PYTHON) -m tests.gpu
else
gpu: .venv/run.stamp
	$(BIN)/python -m tests.gpu
endif

screenshots: .venv/test.stamp
	$(BIN)/python tests/browser/chromium.py
	$(BIN)/python -m tests.browser.screenshots

.venv/run.stamp: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Napkin needs Python 3.11 or newer; set PYTHON=python3.x")'
	@$(PYTHON) -m venv .venv || { echo "No venv module; installing Debian's python3-venv"; apt-get install -y python3-venv && $(PYTHON) -m venv .venv; }
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/test.stamp: requirements-dev.txt .venv/run.stamp
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
