# Headgate. `make` alone prints this help. Every target does its own set-up. Only the targets that start real parts (test, integration, e2e,
# cluster-up) install system packages, and only as root.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ARCH := $(subst aarch64,arm64,$(subst x86_64,x64,$(shell uname -m)))
# The pinned Node. npm has it for Linux. On macOS this folder is absent, and the `node` of the PATH runs (install-node-modules.sh requires 24 or newer).
NODE_DIR := $(CURDIR)/node_modules/node-linux-$(ARCH)/bin
BIN := $(CURDIR)/node_modules/.bin
STAMP := node_modules/.headgate-installed
# The last file that a build of the dashboard's pages writes.
WEB := dist/web/.vite/manifest.json
export PATH := $(NODE_DIR):$(BIN):$(PATH)
VITEST := node $(CURDIR)/node_modules/vitest/vitest.mjs run --config test/vitest.config.ts
# FILES that match no test are an error.
PICKED := $(if $(FILES),--passWithNoTests=false $(FILES))

.PHONY: help
help:
	@awk '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { split($$0, p, ":.*## "); printf "  %-14s %s\n", p[1], p[2] }' $(MAKEFILE_LIST)
	@echo

##@ Setup
.PHONY: setup clean
setup: $(STAMP) ## install the npm packages, with Node 24; every other target does so when needed

$(STAMP): package-lock.json
	@PATH="$${PATH#$(NODE_DIR):$(BIN):}" bash test/parts/install-node-modules.sh $(STAMP)

clean: ## remove everything built or installed inside the clone (the cache outside the clone stays)
	rm -rf node_modules dist .headgate coverage

##@ Develop
.PHONY: run status run-gateway run-operator generate format lint typecheck build web sizes screenshots picture
run: $(STAMP) $(if $(filter 0 false,$(DASHBOARD)),,$(WEB)) ## start everything on this machine from examples/standalone (PORT, HOST, MANIFESTS, REDIS_URL, MODEL_URL, DASHBOARD=0, PAYMENTS=stand-in)
	@exec node standalone/main.ts

status: $(STAMP) ## print the keys and models of `make run` with their conditions, as kubectl get does
	@exec node standalone/status.ts

run-gateway: $(STAMP) ## start one gateway from the sources, with the settings of its environment (docs/gateway.md)
	@exec node gateway/main.ts

run-operator: $(STAMP) ## start one operator from the sources, with the settings of its environment (operator/README.md)
	@exec node operator/main.ts

generate: $(STAMP) ## write the files generated from the schemas: CRDs, reference page, rights
	@node generate.ts

format: $(STAMP) ## format all files
	@prettier --log-level warn --write .

lint: $(STAMP) ## lint: correctness, size caps, import fences
	@oxlint

typecheck: $(STAMP) ## check the types
	@tsc -p . && tsc -p dashboard/web

build: $(WEB) ## bundle the programs below dist/
	@node build.ts

web: $(WEB) ## build the pages of the dashboard below dist/web, if their sources have changed

$(WEB): $(STAMP) $(shell find dashboard/web -type f) $(wildcard dashboard/server/page-data/*.ts)
	@vite build --logLevel warn --config dashboard/web/vite.config.ts

sizes: $(STAMP) ## print the sizes of the code, with their aims and caps, and the ten files nearest to a cap
	@node test/sizes.ts

screenshots: $(WEB) ## draw each page of the dashboard into docs/images (needs chromium)
	@node test/screenshots.ts

picture: $(STAMP) ## record a session of `make run` and draw docs/first-key.svg
	@node test/picture.ts

##@ Test
.PHONY: test unit contract property integration e2e conformance agents python-sdks ai-sdk openapi bench soak
test: $(WEB) ## all layers that need no cluster: unit, contract, property, integration
	@node test/run-layers.ts unit contract property integration

unit: $(STAMP) ## unit tests; need only Node; FILES="..." selects files by parts of their paths
	@$(VITEST) --project unit $(PICKED)

contract: $(WEB) ## contract tests: schemas, errors, documents, import fences, bundles; need only Node; FILES="..." selects
	@$(VITEST) --project contract $(PICKED)

property: $(STAMP) ## property tests; need only Node; FILES="..." selects
	@node test/run-layers.ts property $(FILES)

integration: $(WEB) ## integration tests against a real API server, Redis and model server; FILES="..." selects
	@node test/run-layers.ts integration $(FILES)

e2e: $(WEB) ## end-to-end tests on a one-node cluster (root)
	@node test/run-layers.ts e2e $(FILES)

conformance: $(STAMP) ## llama.cpp's own server tests, directly and through the gateway; FILES="..." selects (test/conformance/README.md)
	@node test/conformance/main.ts $(FILES)

agents: $(STAMP) ## Claude Code, Codex and opencode through the gateway: requests and texts; FILES="..." selects (test/clients/README.md)
	@node test/clients/main.ts $(FILES)

python-sdks: $(STAMP) ## the Python SDKs, LangChain and LlamaIndex, directly and through the gateway (test/clients/python/README.md)
	@node test/clients/python/main.ts

ai-sdk: $(STAMP) ## the OpenAI provider of the Vercel AI SDK, directly and through the gateway (test/clients/README.md)
	@node test/clients/ai-sdk/main.ts

openapi: $(STAMP) ## random requests by docs/openapi.yaml (schemathesis) to a gateway: EXAMPLES of each operation, SEED (test/openapi/README.md)
	@node test/openapi/main.ts

bench: build ## measure requests, operator, limits and dashboard; PART="..." selects, BASE=<clone> compares (test/bench/README.md)
	@node test/bench/main.ts

soak: build ## measure propagation, memory, attacks and limits for an hour
	@node test/bench/soak.ts
	@LEDGER_RUNS=$${LEDGER_RUNS:-20000} BALANCE_RUNS=$${BALANCE_RUNS:-3125} $(VITEST) --project property --testTimeout 7200000 gateway/limits operator/accounts

##@ Cluster
.PHONY: cluster-up cluster-down images kind-load
cluster-up: $(STAMP) ## start the one-node cluster of `make e2e`, with the images loaded (root)
	@bash test/parts/prepare.sh e2e && bash test/parts/images.sh && bash test/parts/node.sh up && bash test/parts/node.sh load dist/images/*.tar

cluster-down: ## stop that cluster and remove its state
	@bash test/parts/node.sh down

images: build ## build the container images as dist/images/headgate.tar; needs no Docker
	@bash test/parts/images.sh headgate

kind-load: ## build the images and load them into a kind cluster (KIND_CLUSTER; default: kind)
	@command -v kind >/dev/null || { echo "kind-load: the program kind is missing; install it (https://kind.sigs.k8s.io) and run 'kind create cluster'" >&2; exit 1; }
	@$(MAKE) images
	@kind load image-archive dist/images/headgate.tar --name "$${KIND_CLUSTER:-kind}"

##@ Gate
.PHONY: check
check: $(STAMP) ## format, lint, types, generated files, sizes of pages, unit and contract tests; needs only Node
	@bash test/parts/check.sh
