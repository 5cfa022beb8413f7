#!/usr/bin/env bash
# The CRDs of other projects whose objects the chart renders, for the API server of the tests: HTTPRoute of the Gateway API;
# ServiceMonitor, PodMonitor and PrometheusRule of the Prometheus operator. Both projects publish them in their Go modules.
#   foreign-crds.sh          fetch them once into ${XDG_CACHE_HOME:-~/.cache}/headgate/crds/; print the folder
set -euo pipefail
GATEWAY_API=sigs.k8s.io/gateway-api@v1.4.1
GATEWAY_API_SUM=h1:NPxFutNkKNa8UfLd2CMlEuhIPMQgDQ6DXNKG9sHbJU8=
PROMETHEUS=github.com/prometheus-operator/prometheus-operator@v0.85.0
PROMETHEUS_SUM=h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/crds/gateway-api-${GATEWAY_API#*@}-prometheus-operator-${PROMETHEUS#*@}
export PATH=$PATH:/usr/local/go/bin GOFLAGS=-mod=mod

module() { # module NAME@VERSION SUM: prints its folder; refuses a module whose content does not have the sum
  local said dir
  said=$(cd / && go mod download -json "$1") || { echo "foreign-crds: $1 cannot be downloaded: $said" >&2; return 1; }
  dir=$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$said")
  grep -qF "\"Sum\": \"$2\"" <<<"$said" || { echo "foreign-crds: the content of $1 does not have the sum $2" >&2; return 1; }
  echo "$dir"
}

if [[ ! -d $CACHE ]]; then
  gateway_api=$(module "$GATEWAY_API" "$GATEWAY_API_SUM")
  prometheus=$(module "$PROMETHEUS" "$PROMETHEUS_SUM")
  mkdir -p "${CACHE%/*}"
  new=$(mktemp -d "${CACHE%/*}/.new-XXXXXX")
  cp "$gateway_api/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml" "$new/"
  cp "$prometheus/example/prometheus-operator-crd/monitoring.coreos.com_"{servicemonitors,podmonitors,prometheusrules}.yaml "$new/"
  chmod -R u+w "$new"
  mv "$new" "$CACHE" # last, so that an interrupted run does not look finished
fi
echo "$CACHE"
