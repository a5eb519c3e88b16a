# Shorthands; every one of them works without make as well (see the commands).
PYTHON ?= python3
SEEDS ?= 2000

.PHONY: check lint test test-aws infra-test localstack-test simulate kill bench demo format requirements

check: lint test  ## everything CI runs

lint:  ## format, lint, types, direction of imports
	$(PYTHON) scripts/check.py

test:  ## all tests; ARGS go to pytest
	$(PYTHON) scripts/test.py $(ARGS)

infra-test:  ## infra/cdk: assertions, cdk-nag, cdk synth, cdk deploy onto an emulator; ARGS go to pytest
	$(PYTHON) scripts/infra.py test $(ARGS)

test-aws:  ## all of the conformance folder on a container of the emulated AWS (a run of all tests takes a third); ARGS go to pytest
	STEPWELL_AWS_SHARE=1 $(PYTHON) scripts/test.py tests/conformance -k aws-cached $(ARGS)

localstack-test:  ## the AWS adapters against AWS_ENDPOINT_URL (LocalStack by default); ARGS=--ministack needs no Docker
	$(PYTHON) scripts/localstack.py $(ARGS)

simulate:  ## deterministic simulation over SEEDS seeds
	$(PYTHON) scripts/run.py -m tests.simulation --seeds $(SEEDS) $(ARGS)

kill:  ## the long kill test: processes killed at random moments; ARGS go to tests/kill/run.py
	$(PYTHON) scripts/run.py -m tests.kill.run $(ARGS)

bench:  ## the benchmarks, with peers where they are installed
	$(PYTHON) scripts/run.py benchmarks/run.py $(ARGS)

demo:  ## the order-fulfilment example on the embedded engine
	$(PYTHON) scripts/demo.py $(ARGS)

format:
	$(PYTHON) scripts/run.py -m ruff format .
	$(PYTHON) scripts/run.py -m ruff check --fix .

requirements:  ## pins anew (needs uv)
	$(PYTHON) scripts/compile_requirements.py $(ARGS)
