{{/* Names, labels and image references that every template shares. */}}

{{- define "headgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "headgate.operator" -}}{{ include "headgate.fullname" . }}-operator{{- end -}}
{{- define "headgate.gateway" -}}{{ include "headgate.fullname" . }}-gateway{{- end -}}
{{- define "headgate.dashboard" -}}{{ include "headgate.fullname" . }}-dashboard{{- end -}}
{{- define "headgate.payments" -}}{{ include "headgate.fullname" . }}-payments{{- end -}}
{{- define "headgate.redis" -}}{{ include "headgate.fullname" . }}-redis{{- end -}}
{{/* Name of an object without a namespace. It holds the release namespace, so releases of the same name in two namespaces do not collide. */}}
{{- define "headgate.clusterName" -}}{{ include "headgate.operator" . }}-{{ .Release.Namespace }}{{- end -}}

{{/* Selector labels of one component: (list $ "gateway"). They are immutable in a Deployment, so none of them changes with a version. */}}
{{- define "headgate.selector" -}}
app.kubernetes.io/name: {{ default (index . 0).Chart.Name (index . 0).Values.nameOverride }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "headgate.labels" -}}
{{- $root := index . 0 -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: headgate
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of a pod: (list $ "gateway"). They hold no chart version, so that a new chart version alone restarts no pod. */}}
{{- define "headgate.podLabels" -}}
{{ include "headgate.selector" . }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Image reference: (list $ .Values.gateway.image). A digest takes precedence over the tag. */}}
{{- define "headgate.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}
{{- $registry := default $root.Values.global.imageRegistry $image.registry -}}
{{- with $registry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default $root.Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}

{{/* Image of one of our own programs: (list $ "operator"). Fails without a registry, since no image is published. */}}
{{- define "headgate.ownImage" -}}
{{- $root := index . 0 -}}{{- $program := index . 1 -}}
{{- $image := (index $root.Values $program).image -}}
{{- $namesRegistry := and (contains "/" $image.repository) (regexMatch "[.:]|^localhost$" (splitList "/" $image.repository | first)) -}}
{{- if not (or $image.registry $root.Values.global.imageRegistry $image.digest $namesRegistry) -}}
{{- $tag := default $root.Chart.AppVersion $image.tag -}}
{{- $programs := $root.Values.dashboard.enabled | ternary (list "operator" "gateway" "dashboard") (list "operator" "gateway") -}}
{{- fail (printf "%s.image.registry: it is empty, and Headgate publishes no image yet, so Kubernetes would pull %s:%s from docker.io, where anybody may own that name. For kind, run `make kind-load` and add --set %s. For another cluster, run `docker build -f %s/Dockerfile -t REGISTRY/%s:%s .` and `docker push REGISTRY/%s:%s` for %s, and set each registry to REGISTRY." $program $image.repository $tag (printf "%s.image.registry=localhost" (join ".image.registry=localhost," $programs)) $program $image.repository $tag $image.repository $tag (join ", " $programs)) -}}
{{- end -}}
{{- include "headgate.image" (list $root $image) -}}
{{- end -}}

{{- define "headgate.publicURL" -}}
{{- default (printf "http://%s.%s.svc:%v" (include "headgate.gateway" .) .Release.Namespace .Values.gateway.service.port) .Values.gateway.publicURL -}}
{{- end -}}
