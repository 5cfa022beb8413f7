{{/* Parts that the operator's pods and the uninstall Job have in common. */}}

{{- define "headgate.operatorEnv" -}}
{{- $values := .Values.operator -}}
- { name: NAMESPACE, valueFrom: { fieldRef: { fieldPath: metadata.namespace } } }
- { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
- { name: METRICS_PORT, value: "9090" }
- { name: USAGE_PORT, value: "9091" }
- { name: GATEWAY_SERVICE, value: {{ include "headgate.gateway" . }} }
- { name: PUBLIC_URL, value: {{ include "headgate.publicURL" . | quote }} }
- { name: KEYRING_SHARDS, value: {{ .Values.keyring.shards | int | quote }} }
- { name: WATCH_NAMESPACES, value: {{ include "headgate.watchNamespaces" . | quote }} }
- { name: FORMER_NAMESPACES, value: {{ join "," .Values.scope.formerNamespaces | quote }} }
- { name: NAMESPACE_LABELS, value: {{ ternary "true" "false" (eq (include "headgate.readsNamespaces" .) "true") | quote }} }
- { name: PUBLISHING_NAMESPACES, value: {{ join "," .Values.scope.publishers | default .Release.Namespace | quote }} }
- { name: CLUSTER_ADDRESS_NAMESPACES, value: {{ join "," .Values.scope.clusterAddresses | default .Release.Namespace | quote }} }
- { name: ACCOUNTS, value: {{ ternary "true" "false" (eq (include "headgate.hasAccounts" .) "true") | quote }} }
- { name: ACCOUNT_REQUIRED_NAMESPACES, value: {{ include "headgate.accountRequiredIn" . | quote }} }
{{- if .Values.dashboard.enabled }}
- { name: KEYS_NAMESPACE, value: {{ .Values.dashboard.keysNamespace | quote }} }
- { name: REMOVE_REVOKED_AFTER_DAYS, value: {{ .Values.accounts.removeRevokedAfterDays | int | quote }} }
{{- end }}
- { name: BILLING_CURRENCY, value: {{ .Values.billing.currency | quote }} }
- { name: BILLING_LOW_BALANCE, value: {{ .Values.billing.lowBalance | quote }} }
- { name: UNPROVEN_HASH_NAMESPACES, value: {{ join "," .Values.scope.unprovenHashes | quote }} }
- { name: LEASE_DURATION_SECONDS, value: {{ $values.lease.durationSeconds | int | quote }} }
- { name: LEASE_RENEW_SECONDS, value: {{ $values.lease.renewSeconds | int | quote }} }
- { name: LEASE_RETRY_SECONDS, value: {{ $values.lease.retrySeconds | int | quote }} }
- { name: REDIS_TAKE_OVER, value: {{ .Values.redis.takeOver | quote }} }
{{ include "headgate.redisEnv" (list . "operator") }}
{{- /* Half of the memory limit is for long-lived objects, and three times a 32nd for young ones; buffers and the program itself need the
     rest. Without these options, V8 sizes the young part by the memory of the node. Once the old part has less than that left, V8 marks
     without end. */}}
{{- $options := false -}}
{{- range $values.extraEnv }}{{ if eq .name "NODE_OPTIONS" }}{{ $options = true }}{{ end }}{{ end -}}
{{- with dig "limits" "memory" "" $values.resources }}
{{- if not $options }}
- { name: NODE_OPTIONS, value: "--max-old-space-size={{ div (include "headgate.bytes" .) 2097152 }} --max-semi-space-size={{ max 1 (div (include "headgate.bytes" .) 33554432) }}" }
{{- end }}
{{- end }}
{{- include "headgate.commonEnv" (list . $values) }}
{{- end -}}

{{/* `true` if the operator may read the labels of namespaces: when it serves all namespaces, with scope.namespaceLabels, and with accounts. */}}
{{- define "headgate.readsNamespaces" -}}
{{- if or (not .Values.scope.watchNamespaces) .Values.scope.namespaceLabels (include "headgate.hasAccounts" .) }}true{{ end -}}
{{- end -}}

{{/* `true` if Plans, Accounts and Credits are watched: accounts.enabled, by default if the operator serves all namespaces. */}}
{{- define "headgate.hasAccounts" -}}
{{- if kindIs "bool" .Values.accounts.enabled }}{{ if .Values.accounts.enabled }}true{{ end }}{{ else if not .Values.scope.watchNamespaces }}true{{ end -}}
{{- end -}}

{{/* Namespaces that the operator serves, separated by commas; empty: all. People's keys are in one of them. */}}
{{- define "headgate.watchNamespaces" -}}
{{- $names := .Values.scope.watchNamespaces -}}
{{- if and $names .Values.dashboard.enabled }}{{ $names = append $names .Values.dashboard.keysNamespace | uniq }}{{ end -}}
{{- join "," $names -}}
{{- end -}}

{{/* Namespaces where a key needs an account, separated by commas. */}}
{{- define "headgate.accountRequiredIn" -}}
{{- $names := .Values.accounts.requiredIn -}}
{{- if and .Values.dashboard.enabled (not (has "*" $names)) }}{{ $names = append $names .Values.dashboard.keysNamespace | uniq }}{{ end -}}
{{- join "," $names -}}
{{- end -}}

{{/* Fails for a scope or a lease that cannot work, before anything is installed. */}}
{{- define "headgate.checkOperator" -}}
{{- $lease := .Values.operator.lease }}
{{- if not (and (gt (int $lease.durationSeconds) (int $lease.renewSeconds)) (gt (float64 $lease.renewSeconds) (mulf 1.2 $lease.retrySeconds))) }}
{{- fail "operator.lease: durationSeconds > renewSeconds > 1.2 × retrySeconds must hold" }}
{{- end }}
{{- $scope := .Values.scope }}
{{- if and $scope.formerNamespaces (not $scope.watchNamespaces) }}
{{- fail "scope.formerNamespaces goes with scope.watchNamespaces: an operator that serves all namespaces has none to release" }}
{{- end }}
{{- range $scope.formerNamespaces }}
{{- if has . (splitList "," (include "headgate.watchNamespaces" $)) }}{{ fail (printf "scope.formerNamespaces: %s is served too, by scope.watchNamespaces or as dashboard.keysNamespace" .) }}{{ end }}
{{- end }}
{{- if and (has "*" .Values.scope.unprovenHashes) (gt (len .Values.scope.unprovenHashes) 1) }}
{{- fail "scope.unprovenHashes: \"*\" stands for every namespace and goes alone" }}
{{- end }}
{{- if and (has "*" .Values.accounts.requiredIn) (gt (len .Values.accounts.requiredIn) 1) }}
{{- fail "accounts.requiredIn: \"*\" stands for every namespace and goes alone" }}
{{- end }}
{{- if and .Values.accounts.requiredIn (ne (include "headgate.hasAccounts" .) "true") }}
{{- fail "accounts.requiredIn needs accounts.enabled: true" }}
{{- end }}
{{- if and (has "*" $scope.clusterAddresses) (gt (len $scope.clusterAddresses) 1) }}
{{- fail "scope.clusterAddresses: \"*\" stands for every namespace and goes alone" }}
{{- end }}
{{- if and (has "*" $scope.publishers) (gt (len $scope.publishers) 1) }}
{{- fail "scope.publishers: \"*\" stands for every namespace and goes alone" }}
{{- end }}
{{- end -}}
