{{- define "headgate.gatewayEnv" -}}
- { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
- { name: PORT, value: "8080" }
- { name: METRICS_PORT, value: "9090" }
- { name: KEYRING_DIR, value: /var/run/headgate }
- { name: DEREGISTRATION_SECONDS, value: {{ .Values.gateway.deregistrationSeconds | int | quote }} }
- { name: DRAIN_SECONDS, value: {{ .Values.gateway.drainSeconds | int | quote }} }
- { name: MAX_BODY_BYTES, value: {{ .Values.gateway.maxBodyBytes | int64 | quote }} }
- { name: MAX_REPLICAS, value: {{ include "headgate.maxReplicas" . | quote }} }
- { name: CLUSTER_ADDRESS_NAMESPACES, value: {{ join "," .Values.scope.clusterAddresses | default .Release.Namespace | quote }} }
{{- with .Values.gateway.forwardHeaders }}
- { name: FORWARD_HEADERS, value: {{ join "," . | quote }} }
{{- end }}
{{- with .Values.gateway.corsOrigins }}
- { name: CORS_ORIGINS, value: {{ join "," . | quote }} }
{{- end }}
{{- if .Values.gateway.upstreamCaSecret }}
- { name: UPSTREAM_CA_FILE, value: /etc/headgate/upstream-ca/ca.crt }
{{- end }}
{{ include "headgate.redisEnv" (list . "gateway") }}
{{- include "headgate.commonEnv" (list . .Values.gateway) }}
{{- end -}}

{{/* Fails for a size of bodies that the gateways would refuse at their start: a body is at most 1/32 of the memory. */}}
{{- define "headgate.checkGateway" -}}
{{- $gateway := .Values.gateway -}}
{{- with dig "limits" "memory" "" (default (dict) $gateway.resources) }}
{{- $needed := mul 32 (int64 $gateway.maxBodyBytes) }}
{{- if lt (include "headgate.bytes" . | int64) $needed }}
{{- fail (printf "gateway.resources.limits.memory: %v is less than 32 times gateway.maxBodyBytes; raise it to %d, or lower gateway.maxBodyBytes" . $needed) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Highest number of gateway pods. */}}
{{- define "headgate.maxReplicas" -}}
{{- $gateway := .Values.gateway -}}
{{- ternary (int $gateway.maxReplicas) (max (int $gateway.maxReplicas) (int $gateway.replicas)) $gateway.autoscaling.enabled -}}
{{- end -}}

{{/* Lowest number of gateway pods, rollouts aside. */}}
{{- define "headgate.minReplicas" -}}
{{- ternary (int .Values.gateway.autoscaling.minReplicas) (int .Values.gateway.replicas) .Values.gateway.autoscaling.enabled -}}
{{- end -}}
