# Everything sets itself up in .venv: the first call takes minutes, the next ones a second.
#   make demo    run the tutorial in the terminal: verdict, where the time went, one A/B
#   make lab     open the tutorial in JupyterLab
#   make test    every test; make accuracy, make bench, make lint, make clean

PYTHON ?= python3
VENV := .venv
BIN := $(abspath $(VENV))/bin
READY := $(VENV)/ready
FRONT_END := $(VENV)/front-end
BUILT := jupyter_ioscope/labextension/static/style.js
TUTORIALS := $(wildcard notebooks/*.ipynb)
FRONT_END_SOURCES := $(shell find labextension/src labextension/style labextension/schema \
	-type f 2>/dev/null)

# kernels are those of .venv, also where the user has others; user site packages stay outside
export JUPYTER_PREFER_ENV_PATH := 1
export PYTHONNOUSERSITE := 1
export PATH := $(BIN):$(PATH)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup browser fuse programs demo lab test accuracy lint typescript bench binder-check screenshot clean

help:
	@sed -n '/^#/p;/^$$/q' Makefile

setup: $(READY) $(FRONT_END)

# An installation that failed half-way leaves no stamp, so the next call tries again. Modules are
# compiled when they are imported: of nineteen thousand most never are.
$(READY): pyproject.toml constraints-dev.txt
	@command -v node >/dev/null || { \
		echo "Node.js (20 or newer) builds the JupyterLab extension: please install it." >&2; exit 1; }
	@echo "Setting up $(VENV): this takes a few minutes, once."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@before=$$(ls $(BUILT) 2>/dev/null); \
	$(BIN)/python notebooks/pip_progress.py --no-compile -e '.[demo,test]' -c constraints-dev.txt \
		&& touch $(READY) && { test -n "$$before" || touch $(FRONT_END); }

# The first installation built it, later ones leave what is there; this builds it again when a source
# or what is installed has changed.
$(FRONT_END): $(READY) labextension/package.json labextension/tsconfig.json $(FRONT_END_SOURCES)
	cd labextension && jlpm install --immutable && jlpm build
	@touch $(FRONT_END)

browser:
	@if command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	elif [ -n "$$CI" ]; then \
		echo "chromium is not installed: the browser tests cannot run" >&2; exit 1; \
	else echo "chromium is not installed: the browser tests will be skipped"; fi

# a mount that answers late, for tests of slow file systems; capsh, for those of refused rights;
# fio, for those of storage baselines
fuse:
	@if command -v fusermount3 >/dev/null && command -v capsh >/dev/null \
		&& command -v fio >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq fuse3 libcap2-bin fio >/dev/null; \
	else echo "fuse3, libcap2-bin or fio is not installed: tests that need them will be skipped"; fi

# both at once: one waits for the network and the disk where the other computes
programs:
	@$(MAKE) --no-print-directory browser fuse & programs=$$!; \
	$(MAKE) --no-print-directory setup; setup=$$?; \
	wait $$programs && exit $$setup

demo: setup
	@python notebooks/run_demo.py notebooks/01_first_profile.ipynb

lab: setup
	cd notebooks && jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) 01_first_profile.ipynb

lint: setup
	ruff check .
	ruff format --check .
	mypy

typescript: setup
	cd labextension && jlpm tsc --noEmit && jlpm test

# lint and TypeScript side by side; pytest comes last, so that its summary is the last line.
# With tests/side_by_side.py a second pytest takes a part, which the first one tells and counts.
test: programs
	@$(MAKE) --no-print-directory lint & lint=$$!; \
	$(MAKE) --no-print-directory typescript; typescript=$$?; \
	wait $$lint && exit $$typescript
	@python -m pytest -p tests.side_by_side -m "not accuracy" --nbval-lax --nbval-current-env \
		$(TUTORIALS) tests

# loaders with known troubles, and healthy ones: how often the verdict is right; then the
# single-cause loaders of the tests five times. A wrong verdict is a figure, a crash an error.
accuracy: setup fuse
	python -m tests.accuracy $(ACCURACY)
	python -m pytest -m accuracy tests || [ $$? -eq 1 ]

bench: setup
	@PYTHONPATH=$(CURDIR):$(CURDIR)/notebooks python -m tests.bench.run $(BENCH)

# the steps of the Binder image in a fresh environment, with 2 GB, one core and nobody attaching
binder-check: setup
	@PYTHONPATH=$(CURDIR) python -m tests.binder_check

screenshot: setup browser
	@PYTHONPATH=$(CURDIR) python notebooks/make_screenshot.py

clean:
	rm -rf $(VENV) .demo build dist .mypy_cache .ruff_cache .pytest_cache
	rm -rf labextension/lib labextension/node_modules labextension/tsconfig.tsbuildinfo
	rm -rf jupyter_ioscope/labextension jupyter_ioscope/static
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
