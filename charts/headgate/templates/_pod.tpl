{{/* Parts of a pod that all components share: the restricted security profile, scheduling, Redis settings. */}}

{{- define "headgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "headgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* (list $ .Values.gateway "gateway") */}}
{{- define "headgate.scheduling" -}}
{{- $root := index . 0 -}}{{- $values := index . 1 -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: { matchLabels: { {{ include "headgate.selector" (list $root (index . 2)) | replace "\n" ", " }} } }
    matchLabelKeys: [pod-template-hash]
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* How one role reaches Redis: (list $ "gateway"); the role is also the name of its ACL user in the trial server */}}
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
- { name: REDIS_USERNAME, valueFrom: { secretKeyRef: { name: {{ . }}, key: {{ $role }}-username } } }
- { name: REDIS_PASSWORD, valueFrom: { secretKeyRef: { name: {{ . }}, key: {{ $role }}-password } } }
{{- end }}
{{- if $redis.caKey }}
- { name: REDIS_CA_FILE, value: /etc/headgate/redis-ca/ca.crt }
{{- end }}
{{- end }}
{{- end -}}

{{- define "headgate.redisMount" -}}
{{- if .Values.redis.caKey }}
- { name: redis-ca, mountPath: /etc/headgate/redis-ca, readOnly: true }
{{- end }}
{{- end -}}

{{- define "headgate.redisVolume" -}}
{{- if .Values.redis.caKey }}
- name: redis-ca
  secret:
    secretName: {{ required "redis.caKey needs redis.existingSecret" .Values.redis.existingSecret }}
    defaultMode: 0440
    items: [{ key: {{ .Values.redis.caKey }}, path: ca.crt }]
{{- end }}
{{- end -}}

{{/* (list "/readyz" 2 3): path, period and failures */}}
{{- define "headgate.probe" -}}
httpGet: { path: {{ index . 0 }}, port: metrics }
periodSeconds: {{ index . 1 }}
timeoutSeconds: 2
failureThreshold: {{ index . 2 }}
{{- end -}}
