# One environment, installed from one lock file. Every target runs inside it.
PYTHON ?= python3
JOBS   ?= 2
VERSIONS ?= lowest-direct
VENV   := .venv
BIN    := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: article help site quickstart test test-all all lint size types unit bounds smoke
.PHONY: smoke-all long faults mutants stale bench docs notebooks wheel lock sbom clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.done: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

quickstart: $(VENV)/.done  ## the whole chain on data that need no download
	dperm dpcd -j $(JOBS) --config scale=quickstart
	@dperm table paper=dpcd product=table2 scale=quickstart

test: $(VENV)/.done  ## linters, types, unit tests, a smoke run of a paper
	@began=$$(date +%s); $(MAKE) --no-print-directory -j $(JOBS) lint types && \
	  $(MAKE) --no-print-directory unit smoke && \
	  echo "make test: $$(($$(date +%s) - began)) s"

test-all: test long smoke-all faults mutants stale docs wheel  ## all that is tested, in hours
	$(MAKE) bounds VERSIONS=lowest-direct
	$(MAKE) bounds VERSIONS=highest

all: $(VENV)/.done  ## everything, at full size: make all JOBS=32
	snakemake -j $(JOBS) all

lint: $(VENV)/.done size  ## ruff, layers, sizes, snakefmt
	ruff check src tests bench docs notebooks
	ruff format --check src tests bench docs notebooks
	lint-imports
	snakefmt --check Snakefile

size: $(VENV)/.done  ## statements, and names that say nothing, against their budgets
	python tests/lint/size.py
	python tests/lint/names.py

types: $(VENV)/.done  ## mypy
	mypy

unit: $(VENV)/.done  ## unit tests
	pytest -n $(JOBS)

bounds: $(VENV)/.done  ## the library's rooms with VERSIONS=lowest-direct (or highest)
	uv venv -q --clear -p $(PYTHON) build/$(VERSIONS)
	uv pip install -q -p build/$(VERSIONS) --resolution $(VERSIONS) -e '.[dev]'
	PATH="$(CURDIR)/build/$(VERSIONS)/bin:$$PATH" \
	  python -m pytest -n $(JOBS) tests/estimators tests/problems tests/privacy tests/solvers

smoke: $(VENV)/.done  ## one paper by the Snakefile, on tiny grids
	snakemake -j $(JOBS) -q rules --config scale=smoke -- dpcd
	dperm verify dpcd scale=smoke

smoke-all: $(VENV)/.done  ## every stage of every paper, on tiny grids
	snakemake -j $(JOBS) -q rules --config scale=smoke -- all
	dperm verify scale=smoke

long: $(VENV)/.done  ## tests that take minutes, and all variants of the others
	pytest -n $(JOBS) -m long --ignore tests/faults

faults: $(VENV)/.done  ## faults by chance into results/faults.csv; kills, SLURM, offline
	PYTHONPATH=tests python -m faults.campaign
	FAULT_TIMES=10 pytest -n 0 -m "" tests/faults

mutants: $(VENV)/.done  ## bugs planted one at a time
	cd tests && python -m mutants.run
	cd tests && python -m mutants.rooms

stale: $(VENV)/.done  ## every setting and 60 edits of code for each paper, against the keys of all jobs
	cd tests && python -m stale.run

bench: $(VENV)/.done  ## kernels against C, batches against single runs, growth, memory
	python -m bench

docs: $(VENV)/.done  ## the documentation site, docs/_build/html/index.html
	rm -rf docs/auto_gallery
	sphinx-build -W --keep-going -q -b html docs docs/_build/html

site: $(VENV)/.done  ## the documentation site, with the results explorer in it
	dperm report
	$(MAKE) --no-print-directory docs

notebooks: $(VENV)/.done  ## run the notebooks again and keep what they print
	python notebooks/build.py

article: $(VENV)/.done  ## docs/article: numbers from results/, then the PDF
	pip install -q --disable-pip-version-check -e '.[article]'
	python docs/article/build.py

wheel: $(VENV)/.done  ## the wheel in an empty environment: fits, then a quick run
	rm -rf build/wheel && mkdir -p build/wheel
	python -m build -q --wheel --no-isolation -o build/wheel .
	$(PYTHON) -m venv build/wheel/env
	build/wheel/env/bin/pip install -q --disable-pip-version-check build/wheel/*.whl
	cp docs/examples/mine/yields.csv tests/core_install.py build/wheel
	cd build/wheel && env -u PYTHONPATH env/bin/python core_install.py
	build/wheel/env/bin/pip install -q "$$(echo build/wheel/dperm-*.whl)[pipeline]"
	mkdir build/wheel/empty && cd build/wheel/empty && \
	  env -u PYTHONPATH PATH="$(CURDIR)/build/wheel/env/bin:$$PATH" \
	  dperm dpcd -j $(JOBS) --config scale=quickstart && \
	  test -s figures/quickstart/dpcd/figure1.png

lock:  ## resolve requirements.lock anew, and write it into environment.yml
	uv pip compile pyproject.toml --extra dev --universal --generate-hashes \
	  --no-header --no-annotate -q -o requirements.lock
	sed -i.old '/^  - pip:/q' environment.yml && rm environment.yml.old
	awk '{ more = sub(/ *\\$$/, ""); sub(/^ +/, " "); \
	  printf "%s%s%s", /^ / ? "" : "      - \"", $$0, more ? "" : "\"\n" }' \
	  requirements.lock >> environment.yml

sbom: $(VENV)/.done  ## what the lock file installs, in CycloneDX: build/sbom.json
	mkdir -p build
	cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
	  --output-reproducible --validate -o build/sbom.json

clean:  ## remove results and figures of the small scales, logs and caches
	rm -rf results/smoke results/quickstart figures/smoke figures/quickstart logs
	rm -rf .snakemake .mypy_cache .ruff_cache .pytest_cache build dist docs/auto_gallery docs/_build
