# `make demo` and `make test` need only Python 3.11 or newer: they set up a private environment in .venv themselves.

VENV   := .venv
LOWEST := .venv-lowest
CADQUERY := .venv-cadquery
BUILD123D := .venv-build123d
MUJOCO := .venv-mujoco
BIN    := $(VENV)/bin

# The environment is renewed when pyproject.toml or the version changes: an editable install records the version.
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/cardan/__init__.py 2>/dev/null)
STAMP   := $(VENV)/.installed-$(VERSION)
# The demo needs a fifth of the packages that the tests need.
DEMO    := $(or $(wildcard $(STAMP)),$(VENV)/.demo-$(VERSION))
DEMO_EXTRAS := jit,view

# $(call find_python,candidates,version test): the first candidate that starts and passes.
find_python = $(shell for p in $(1); do \
	"$$p" -c 'import sys; sys.exit(not ($(2)))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

SUPPORTED        := sys.version_info >= (3, 11)
LOWEST_SUPPORTED := (3, 11) <= sys.version_info < (3, 13)
PYTHON           ?= $(call find_python,python3 python python3.14 python3.13 python3.12 python3.11,$(SUPPORTED))
LOWEST_PYTHON    ?= $(call find_python,python3.11 python3.12 python3 $(BIN)/python,$(LOWEST_SUPPORTED))

# Tests run on all cores: a worker that is idle takes tests from the others. Kernels are compiled before. There is one
# worker more than cores, since tests of the page and of CAD wait for other processes. SHARD=1/3 runs the first of three
# parts.
WORKERS  := $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 7 ? cores + 1 : 8)))
PARALLEL := -n $(WORKERS) --dist worksteal $(if $(SHARD),--shard $(SHARD))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Without bytecode on disk every process compiles the sources of numba, numpy and scipy again: half of its start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo quick test kernels warm client browser lint types contracts unit-test docs-test jit-test nojit-test wheel lowest bench bench-foundation bench-vocabulary bench-dynamics bench-geometry bench-contact bench-heaps cad build123d mujoco fuzz long long-test processors generated images clean

help:
	@echo "make demo              open the workbench on the gallery (HEADLESS=1: print a table)"
	@echo "make quick             the first case of every test that is not slow, in a minute"
	@echo "make test              lint, types, import contracts, tests, with the JIT, and without compiled code; of the client too"
	@echo "make kernels           compile what has changed into the library of kernels; else Numba compiles it when it is used"
	@echo "make client            build the page of the workbench; lint, types and tests of its sources"
	@echo "make lint types contracts docs-test    one of these alone"
	@echo "make wheel             build the wheel and try it outside the source tree"
	@echo "make lowest            tests with the oldest supported numba, numpy and scipy"
	@echo "make bench-foundation  time assembly from many starts"
	@echo "make bench-vocabulary  primitives of the user's own beside the built-in ones"
	@echo "make bench-dynamics    steps of dynamics beside the installed peers"
	@echo "make bench-geometry    NURBS and distances beside the installed peers"
	@echo "make bench-contact     contacts: solved again after 1 mm, steps, and rows of up to 200 discs"
	@echo "make bench-heaps       1,000 spheres and 1,000 boxes that fall into a bin, beside MuJoCo"
	@echo "make bench             ours beside the installed peers (BENCH='--quick --peers none')"
	@echo "make cad               assemblies of CadQuery, solved beside its own solver in an environment of its own"
	@echo "make build123d         joints of build123d, their loops closed, in an environment of its own"
	@echo "make mujoco            MJCF and URDF read beside MuJoCo, in an environment of its own"
	@echo "make fuzz              20,000 random mechanisms and 10,000 of extreme scales, judged by equations that are not the library's"
	@echo "make long              make fuzz, the laws that take too many cases for make test, and make processors"
	@echo "make processors        tests of numbers with the code of processors without AVX-512 (v3), and AVX (v2)"
	@echo "make generated         what follows from kinds of joints, loads and shapes and from tables: types, documents, the schema"
	@echo "make images            the pictures of the documents"
	@echo "make clean             remove what make made"

# The kernels of the primitives; an import of the library makes them too.
GENERATED := src/cardan/constraints/_generated.py
$(GENERATED): $(addprefix src/cardan/constraints/,primitives.py codegen.py expression.py registry.py) | $(STAMP)
	@$(BIN)/python -c 'from cardan.constraints import codegen; codegen.write()'

# Without a terminal, in CI and with HEADLESS=1: the table alone.
demo: $(DEMO)
	@echo "== kernels"
	@$(BIN)/python -m kernels.link
	@if test -t 1 && test -z "$$CI" && test "$$HEADLESS" != 1; then \
		$(BIN)/python client/build.py; $(BIN)/cardan view; else $(BIN)/cardan examples --solve; fi

# Kernels that are not compiled yet are compiled by the tests that need them.
quick: $(STAMP)
	@$(BIN)/python client/build.py
	@$(BIN)/python -m pytest -q $(PARALLEL) -m quick

# The kernels are compiled on one core while another runs the checkers.
test: $(STAMP)
	@$(MAKE) --no-print-directory -j2 kernels client browser lint types contracts
	@$(MAKE) --no-print-directory unit-test jit-test nojit-test

# The library of kernels, made again of modules whose sources have changed. Without a linker Numba compiles all of them.
kernels: $(STAMP) $(GENERATED)
	@echo "== kernels"
	@$(BIN)/python -m kernels.link

# Without the library: Numba compiles all kernels, and keeps them in the cache of the user.
warm: $(STAMP)
	@echo "== kernels"
	@said=$$(CARDAN_KERNELS=numba $(BIN)/cardan warmup 2>&1) || { echo "$$said" >&2; exit 1; }; echo "$$said" | tail -1

# Node from PATH or from pip, and the packages of client/package-lock.json.
client: $(STAMP)
	@echo "== client: lint, types, tests, page"
	@$(BIN)/python client/build.py --check

# Tests drive a real Chromium; it is installed where that is possible.
browser:
	@echo "== browser"
	@test -n "$$CARDAN_CHROMIUM" || command -v chromium chromium-browser google-chrome >/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get -qq update >/dev/null \
		&& DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends chromium >/dev/null; } \
		|| echo "no Chromium: the tests of the workbench are skipped (they fail where CI is set)" >&2

lint: $(STAMP)
	@echo "== lint"
	@$(BIN)/ruff check --quiet .

types: $(STAMP) $(GENERATED)
	@echo "== types"
	@$(BIN)/mypy --no-error-summary

contracts: $(STAMP) $(GENERATED)
	@echo "== import contracts"
	@$(BIN)/lint-imports --no-logo

unit-test: $(STAMP) kernels
	@echo "== tests, with the docs' code"
	@$(BIN)/python -m pytest -q $(PARALLEL)

docs-test: $(STAMP)
	@echo "== docs' code, citations and links"
	@$(BIN)/python -m pytest -q tests/project/test_docs.py

# Numba compiles kernels of the library, and they give right answers: one case of each law of assembly and dynamics.
jit-test: $(STAMP)
	@echo "== tests with the JIT"
	@CARDAN_KERNELS=numba $(BIN)/python -m pytest -q $(PARALLEL) -m quick --ignore tests/kernel/test_without_numba.py \
		tests/kernel tests/analysis/test_assembly.py tests/dynamics/test_closed_forms.py

nojit-test: $(STAMP)
	@echo "== tests with the JIT disabled"
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q $(PARALLEL) -m "nojit and not long"

bench-foundation: $(STAMP)
	@$(BIN)/python benchmarks/foundation.py

bench-vocabulary: $(STAMP)
	@$(BIN)/python benchmarks/vocabulary.py

bench-dynamics: $(STAMP)
	@$(BIN)/python benchmarks/dynamics.py $(BENCH)

bench-geometry: $(STAMP)
	@$(BIN)/python benchmarks/geometry.py $(BENCH)

bench-contact: $(STAMP)
	@$(BIN)/python benchmarks/contact.py

bench-heaps: $(MUJOCO)/.installed
	@$(MUJOCO)/bin/python benchmarks/heaps.py

# CadQuery and build123d want different versions of OCP, so each gets an environment of its own.
cad: $(CADQUERY)/.installed
	@$(CADQUERY)/bin/python -m pytest -q -s -p no:cacheprovider tests/cad/in_cadquery.py

build123d: $(BUILD123D)/.installed
	@$(BUILD123D)/bin/python -m pytest -q -s -p no:cacheprovider tests/cad/in_build123d.py

mujoco: $(MUJOCO)/.installed
	@$(MUJOCO)/bin/python -m pytest -q -p no:cacheprovider tests/files/in_mujoco.py tests/files/test_robots.py

$(CADQUERY)/.installed: pyproject.toml
	$(call peer,$(CADQUERY),cadquery>=2.8)

$(BUILD123D)/.installed: pyproject.toml
	$(call peer,$(BUILD123D),build123d>=0.9)

$(MUJOCO)/.installed: pyproject.toml
	$(call peer,$(MUJOCO),mujoco>=3.2)

# $(call peer,environment,requirement)
define peer
	@$(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install -qq '$(2)' 'pytest>=8.3,<10' -e .
	@touch $@
endef

bench: $(STAMP)
	@$(BIN)/python benchmarks/run.py $(BENCH)

long: fuzz long-test processors

long-test: $(STAMP)
	@echo "== laws over many cases"
	@$(BIN)/python -m pytest -q $(PARALLEL) -m long

# Folders whose tests have numerical bars; `make long` runs them with the machine code of other processors too.
NUMERICAL := $(addprefix tests/,analysis constraints coordinates dynamics geometry joints math solvers system)

# $(call with_processor,x86-64 level,kind of processor for OpenBLAS,what NumPy must not use): kernels, BLAS and NumPy
# all choose code by the processor. NUMBA_CPU_FEATURES is empty, since Numba would else use those of this machine.
# Each level has its own cache of kernels: processes that compile for two of them may overwrite each other's files.
define with_processor
	@echo "== tests with the code of $(1)"
	@export CARDAN_KERNELS=numba NUMBA_CPU_NAME=$(1) NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=$(2) NPY_DISABLE_CPU_FEATURES="$(3)" \
		CARDAN_CACHE_DIR="$(CURDIR)/build/kernels-$(1)"; \
		$(MAKE) --no-print-directory warm && $(BIN)/python -m pytest -q $(PARALLEL) $(NUMERICAL)
endef

# NumPy from 2.4 on has levels; before, it had single features.
WITHOUT_V4 := X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL
WITHOUT_V3 := X86_V3 AVX2 FMA3 $(WITHOUT_V4)

processors: $(STAMP)
ifeq ($(shell uname -m),x86_64)
	$(call with_processor,x86-64-v3,Haswell,$(WITHOUT_V4))
	$(call with_processor,x86-64-v2,Nehalem,$(WITHOUT_V3))
else
	@echo "== tests with the code of other processors: only on x86-64"
endif

fuzz: $(STAMP)
	@$(BIN)/python fuzz/run.py --cases 20000 --jobs 2
	@$(BIN)/python fuzz/run.py --extreme --cases 10000 --jobs 2
	@$(BIN)/python fuzz/files.py --cases 5000 --jobs 2
	@$(BIN)/python fuzz/formats.py --cases 20000 --jobs 2
	@$(BIN)/python fuzz/formats.py --bombs

generated: $(STAMP)
	@$(BIN)/python -m docs.generate

images: $(STAMP)
	@$(BIN)/python -m pip install -qq -e '.[plot]'
	@$(BIN)/python docs/figures.py
	@$(BIN)/python docs/animation.py
	@$(BIN)/python docs/recording.py
	@$(BIN)/python docs/contact_sheet.py

# Tried with its own empty kernel cache, from a directory where only the installed package can be found.
wheel: $(STAMP)
	@echo "== wheel"
	@mkdir -p dist; rm -f dist/cardan-*.whl
	@$(BIN)/python -m build --wheel --outdir dist >dist/build.log 2>&1 || { cat dist/build.log >&2; exit 1; }
	@set -eu; wheel="$(CURDIR)/$$(echo dist/cardan-$(VERSION)-*.whl)"; \
	scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	"$(CURDIR)/$(BIN)/python" -m venv "$$scratch/venv"; \
	"$$scratch/venv/bin/python" -m pip install -qq "$$wheel"; \
	cd "$$scratch"; export XDG_CACHE_HOME="$$scratch/cache" PATH="$$scratch/venv/bin:$$PATH"; \
	unset CARDAN_CACHE_DIR NUMBA_CACHE_DIR; \
	python -c 'import pathlib, sys, cardan; here = pathlib.Path(cardan.__file__).parent; \
		assert here.is_relative_to(sys.prefix), here; assert (here / "py.typed").is_file(), "no py.typed"; \
		assert (here / "constraints" / "_generated.py").is_file(), "no kernels of the primitives"; \
		assert (here / "kernel" / "library.json").is_file(), "no compiled kernels"; \
		assert (here / "view" / "page.html").is_file(), "no page of the workbench"; \
		assert cardan.__version__ == "$(VERSION)", cardan.__version__'; \
	cardan examples >examples.txt; grep -q rsur examples.txt; \
	CARDAN_KERNELS=built cardan solve rsur --json >rsur.json; \
	python -c 'import json; result = json.load(open("rsur.json")); assert result["ok"] is True, result'; \
	echo "$${wheel##*/} imports, lists its examples and assembles one"

lowest: $(LOWEST)/.installed-$(VERSION)
	@echo "== tests with the oldest supported versions"
	@$(LOWEST)/bin/python -m pytest -q $(PARALLEL)

# $(call install,environment,python,version test,what is needed,pip arguments,extras)
# uv installs in a third of the time of pip; pip does it where uv is missing or fails, for example behind an index that
# only the configuration of pip names.
define install
	@echo "== environment $(1)"
	@test -x $(1)/bin/python || { "$(2)" -c 'import sys; sys.exit(not ($(3)))' 2>/dev/null \
		|| { echo "error: $(4) is needed: $(if $(2),$(2) is not,none was found)" >&2; exit 1; }; \
		"$(2)" -m venv $(1); }
	@{ $(1)/bin/python -m pip install -qq uv && $(1)/bin/uv pip install -q --python $(1)/bin/python $(5) -e '.[$(or $(6),dev)]'; } 2>/dev/null \
		|| $(1)/bin/python -m pip install -qq --no-compile $(5) -e '.[$(or $(6),dev)]'
	@rm -f $(1)/.installed-*
	@touch $@
endef

$(STAMP): pyproject.toml
	$(call install,$(VENV),$(PYTHON),$(SUPPORTED),Python 3.11 or newer (make PYTHON=...))

$(VENV)/.demo-$(VERSION): pyproject.toml
	$(call install,$(VENV),$(PYTHON),$(SUPPORTED),Python 3.11 or newer (make PYTHON=...),,$(DEMO_EXTRAS))

$(LOWEST)/.installed-$(VERSION): pyproject.toml tests/lowest-versions.txt
	$(call install,$(LOWEST),$(LOWEST_PYTHON),$(LOWEST_SUPPORTED),Python 3.11 or 3.12 (make LOWEST_PYTHON=...),-c tests/lowest-versions.txt)

clean:
	@rm -rf $(VENV) $(LOWEST) $(CADQUERY) $(BUILD123D) $(MUJOCO) dist build client/node_modules client/build src/cardan/view/page.html src/cardan/kernel/library.* $(GENERATED) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find src tests benchmarks fuzz docs client gallery papers -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
