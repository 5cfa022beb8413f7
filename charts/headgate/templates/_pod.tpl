{{/* Parts of a pod that several components share: scheduling, environment, Redis, CA certificates, probes. */}}

{{/* Scheduling of the pods of a Deployment: (list $ .Values.gateway "gateway") */}}
{{- define "headgate.scheduling" -}}
{{- $root := index . 0 -}}{{- $values := index . 1 -}}
{{- $selector := dict "matchLabels" (include "headgate.selector" (list $root (index . 2)) | fromYaml) -}}
{{- $constraints := list -}}
{{- range $values.topologySpreadConstraints }}
{{- $constraint := dict "labelSelector" $selector "matchLabelKeys" (list "pod-template-hash") -}}
{{- range $name, $value := . }}{{ $_ := set $constraint $name $value }}{{ end -}}
{{- $constraints = append $constraints $constraint }}
{{- end -}}
{{- include "headgate.field" (list "topologySpreadConstraints" $constraints) }}
{{- with include "headgate.placement" (list $root $values) }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Nodes and priority of a pod, and the Secrets that pull its image: (list $ .Values.gateway) */}}
{{- define "headgate.placement" -}}
{{- $root := index . 0 -}}{{- $values := index . 1 -}}
{{- $placement := pick $values "priorityClassName" "nodeSelector" "tolerations" "affinity" "dnsConfig" "hostAliases" -}}
{{- $placement = set $placement "imagePullSecrets" $root.Values.imagePullSecrets -}}
{{- range $name, $value := $placement }}{{ if not $value }}{{ $_ := unset $placement $name }}{{ end }}{{ end -}}
{{- if $placement }}{{ toYaml $placement }}{{ end -}}
{{- end -}}

{{/* Environment by which one role reaches Redis: (list $ "gateway"). The role is also the name of its ACL user in the trial server. */}}
{{- define "headgate.redisEnv" -}}
{{- $root := index . 0 -}}{{- $role := index . 1 -}}{{- $redis := $root.Values.redis -}}
- { name: REDIS_KEY_PREFIX, value: {{ $redis.keyPrefix | quote }} }
{{- if $redis.trial.enabled }}
{{- if or $redis.url $redis.existingSecret }}{{ fail "redis.url and redis.existingSecret are for your own server: set redis.trial.enabled=false with them" }}{{ end }}
- { name: REDIS_URL, value: "redis://{{ include "headgate.redis" $root }}.{{ $root.Release.Namespace }}.svc:6379" }
- { name: REDIS_USERNAME, value: {{ $role }} }
- { name: REDIS_PASSWORD, valueFrom: { secretKeyRef: { name: {{ include "headgate.redis" $root }}, key: {{ $role }}-password } } }
{{- else }}
- { name: REDIS_URL, value: {{ required "redis.trial.enabled=false needs redis.url" $redis.url | quote }} }
{{- with $redis.existingSecret }}
- { name: REDIS_USERNAME, valueFrom: { secretKeyRef: { name: {{ . }}, key: {{ index $redis.secretKeys (printf "%sUsername" $role) }} } } }
- { name: REDIS_PASSWORD, valueFrom: { secretKeyRef: { name: {{ . }}, key: {{ index $redis.secretKeys (printf "%sPassword" $role) }} } } }
{{- end }}
{{- if $redis.caKey }}
- { name: REDIS_CA_FILE, value: /etc/headgate/redis-ca/ca.crt }
{{- end }}
{{- end }}
{{- end -}}

{{/* Passwords of the trial Redis by role, as YAML: derived from redis.trial.password. Without this value, the first install makes random
     passwords, and later renders read them from the cluster. */}}
{{- define "headgate.trialPasswords" -}}
{{- $given := .Values.redis.trial.password -}}
{{- if $given -}}
operator: {{ printf "operator:%s" $given | sha256sum }}
gateway: {{ printf "gateway:%s" $given | sha256sum }}
{{- else -}}
{{- $found := dig "data" dict (lookup "v1" "Secret" .Release.Namespace (include "headgate.redis" .)) -}}
{{- if and (not $found) (not (lookup "v1" "Namespace" "" "kube-system")) -}}
{{- fail "redis.trial.password: Helm sees no cluster here (helm template, --dry-run, Argo CD, helm diff), so it would make new passwords for the trial Redis at every render. Set redis.trial.password to a random text of 16 characters or more, `openssl rand -hex 20` for one, and keep it; or use your own Redis (redis.trial.enabled=false, redis.url, redis.existingSecret)." -}}
{{- end -}}
operator: {{ get $found "operator-password" | b64dec | default (randAlphaNum 40) }}
gateway: {{ get $found "gateway-password" | b64dec | default (randAlphaNum 40) }}
{{- end -}}
{{- end -}}

{{/* Annotations of a pod: (list $ "gateway"). Pods read redis.trial.password from their environment, so a changed value must restart them. */}}
{{- define "headgate.podAnnotations" -}}
{{- $root := index . 0 -}}{{- $role := index . 1 -}}
{{- $annotations := deepCopy (index $root.Values $role).podAnnotations -}}
{{- if and $root.Values.redis.trial.enabled $root.Values.redis.trial.password -}}
{{- $password := get (include "headgate.trialPasswords" $root | fromYaml) $role -}}
{{- $_ := set $annotations "headgate.dev/redis-password-checksum" (sha256sum $password | trunc 16) -}}
{{- end -}}
{{- with $annotations }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Environment that operator and gateway have in common: (list $ .Values.gateway) */}}
{{- define "headgate.commonEnv" -}}
{{- $root := index . 0 -}}
{{- if include "headgate.extraCA" $root }}
- { name: NODE_EXTRA_CA_CERTS, value: /etc/headgate/extra-ca/ca.crt }
{{- end }}
{{- range $name, $value := (index . 1).settings }}
- { name: {{ snakecase $name | upper }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }} }
{{- end }}
{{- with (index . 1).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Renders the environment: (list "operator" .Values.operator "rendered env"). Fails for extraEnv entries that the chart sets itself. */}}
{{- define "headgate.env" -}}
{{- $names := list -}}
{{- range fromYamlArray (index . 2) }}{{ $names = append $names .name }}{{ end -}}
{{- if ne (len $names) (len (uniq $names)) }}
{{- fail (printf "%s.extraEnv: each variable once, and none that the chart sets itself: %s" (index . 0) (join ", " (sortAlpha $names))) }}
{{- end -}}
{{- index . 2 | trim -}}
{{- end -}}

{{/* Volume source of the additional CA certificates; empty if none are set. */}}
{{- define "headgate.extraCA" -}}
{{- $ca := .Values.extraCA -}}
{{- $items := printf "items: [{ key: %s, path: ca.crt }], defaultMode: 0440" $ca.key -}}
{{- if and $ca.secret $ca.configMap }}{{ fail "extraCA: set secret or configMap, not both" }}{{ end -}}
{{- if $ca.secret -}}
secret: { secretName: {{ $ca.secret }}, {{ $items }} }
{{- else if $ca.configMap -}}
configMap: { name: {{ $ca.configMap }}, {{ $items }} }
{{- end -}}
{{- end -}}

{{- define "headgate.mounts" -}}
{{- if .Values.redis.caKey }}
- { name: redis-ca, mountPath: /etc/headgate/redis-ca, readOnly: true }
{{- end }}
{{- if include "headgate.extraCA" . }}
- { name: extra-ca, mountPath: /etc/headgate/extra-ca, readOnly: true }
{{- end }}
{{- end -}}

{{- define "headgate.volumes" -}}
{{- if .Values.redis.caKey }}
- name: redis-ca
  secret:
    secretName: {{ required "redis.caKey needs redis.existingSecret" .Values.redis.existingSecret }}
    defaultMode: 0440
    items: [{ key: {{ .Values.redis.caKey }}, path: ca.crt }]
{{- end }}
{{- with include "headgate.extraCA" . }}
- name: extra-ca
  {{ . }}
{{- end }}
{{- end -}}

{{/* Bytes of an amount of memory in the notation of Kubernetes, for example "512Mi". */}}
{{- define "headgate.bytes" -}}
{{- $text := ternary (int64 . | toString) (toString .) (kindIs "float64" .) -}}
{{- $units := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 -}}
{{- $number := regexFind "^[0-9]+(\\.[0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- if or (not $number) (not (hasKey $units $unit)) }}
{{- fail (printf "%q is not an amount of memory: a number, and Ki, Mi, Gi, Ti, k, M, G or T" $text) }}
{{- end -}}
{{- mulf (float64 $number) (get $units $unit) | int64 -}}
{{- end -}}

{{/* Probes: (list .Values.operator "/readyz" "/livez" 5 3) holds values, paths, and period in seconds and failure threshold of readiness. */}}
{{- define "headgate.probes" -}}
{{- $probes := (index . 0).probes -}}
{{- $common := dict "timeoutSeconds" 2 "failureThreshold" 3 "periodSeconds" 10 -}}
{{- $live := dict "httpGet" (dict "path" (index . 2) "port" "metrics") -}}
{{- $ready := dict "httpGet" (dict "path" (index . 1) "port" "metrics") "periodSeconds" (index . 3) "failureThreshold" (index . 4) -}}
{{- /* mergeOverwrite, because merge takes a 0 of the values for absent */ -}}
readinessProbe: {{- mergeOverwrite (dict) $common $ready $probes.readiness | toYaml | nindent 2 }}
livenessProbe: {{- mergeOverwrite (dict "initialDelaySeconds" 10) $common (deepCopy $live) $probes.liveness | toYaml | nindent 2 }}
{{- with $probes.startup }}
startupProbe: {{- mergeOverwrite (dict) $common $live . | toYaml | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Update strategy of a Deployment: .Values.operator */}}
{{- define "headgate.strategy" -}}
{{- toYaml (default (dict "type" "RollingUpdate" "rollingUpdate" (dict "maxUnavailable" 0 "maxSurge" 1)) .strategy) -}}
{{- end -}}

{{/* A field, unless its value is empty: (list "initContainers" .Values.operator.initContainers) */}}
{{- define "headgate.field" -}}
{{- $name := index . 0 -}}
{{- with index . 1 }}{{ $name }}: {{- toYaml . | nindent 2 }}{{ end -}}
{{- end -}}

{{/* Items of a rendered list and of a list of values: (list (include "headgate.mounts" .) .Values.operator.extraVolumeMounts) */}}
{{- define "headgate.list" -}}
{{- $extra := "" -}}
{{- with index . 1 }}{{ $extra = toYaml . }}{{ end -}}
{{- join "\n" (compact (list (index . 0 | trim) $extra)) -}}
{{- end -}}

{{/* ServiceAccount values of a program, as YAML: (list $ "operator") */}}
{{- define "headgate.accountValues" -}}
{{- $values := (index . 0).Values -}}
{{- if eq (index . 1) "payments" }}{{ toYaml $values.dashboard.payments.serviceAccount }}{{ else }}{{ toYaml (index $values (index . 1)).serviceAccount }}{{ end -}}
{{- end -}}

{{/* Name of the ServiceAccount of a program: (list $ "operator"). Empty for gateways without one. */}}
{{- define "headgate.serviceAccountName" -}}
{{- $program := index . 1 -}}{{- $account := include "headgate.accountValues" . | fromYaml -}}
{{- if $account.name }}{{ $account.name }}
{{- else if $account.create }}{{ include (printf "headgate.%s" $program) (index . 0) }}
{{- else if ne $program "gateway" }}{{ fail (printf "serviceAccount.create=false of the program %s needs serviceAccount.name: a ServiceAccount that you have made" $program) }}
{{- end -}}
{{- end -}}

{{/* ServiceAccount of a program: (list $ "operator") */}}
{{- define "headgate.serviceAccount" -}}
{{- $root := index . 0 -}}{{- $account := include "headgate.accountValues" . | fromYaml -}}
{{- if $account.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "headgate.serviceAccountName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "headgate.labels" . | nindent 4 }}
  {{- with merge (dict) $account.annotations $root.Values.commonAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* PodDisruptionBudget of a program: (list $ "operator" 2) holds the least number of its pods. */}}
{{- define "headgate.podDisruptionBudget" -}}
{{- $root := index . 0 -}}{{- $program := index . 1 -}}
{{- $budget := (index $root.Values $program).podDisruptionBudget -}}
{{- if and $budget.enabled (gt (index . 2 | int) 1) }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include (printf "headgate.%s" $program) $root }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "headgate.labels" (list $root $program) | nindent 4 }}
  {{- with $root.Values.commonAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if $budget.minAvailable }}
  minAvailable: {{ $budget.minAvailable }}
  {{- else }}
  maxUnavailable: {{ $budget.maxUnavailable }}
  {{- end }}
  unhealthyPodEvictionPolicy: {{ $budget.unhealthyPodEvictionPolicy }}
  selector:
    matchLabels: {{- include "headgate.selector" (list $root $program) | nindent 6 }}
{{- end }}
{{- end -}}

{{/* Fields of a Service that people reach: .Values.gateway.service */}}
{{- define "headgate.serviceFields" -}}
{{- $fields := pick . "type" "ipFamilyPolicy" "loadBalancerClass" "loadBalancerSourceRanges" "externalTrafficPolicy" -}}
{{- range $name, $value := $fields }}{{ if not $value }}{{ $_ := unset $fields $name }}{{ end }}{{ end -}}
{{- toYaml $fields -}}
{{- end -}}
