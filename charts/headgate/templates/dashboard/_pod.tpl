{{/* The environment of the dashboard, and what its values must agree on. */}}

{{- define "headgate.dashboardEnv" -}}
{{- $values := .Values.dashboard -}}
{{- $secret := $values.existingSecret -}}
- { name: PORT, value: "8090" }
- { name: METRICS_PORT, value: "9090" }
- { name: DASHBOARD_URL, value: {{ $values.url | quote }} }
- { name: PUBLIC_URL, value: {{ .Values.gateway.publicURL | quote }} }
- { name: DASHBOARD_SECRET, valueFrom: { secretKeyRef: { name: {{ $secret }}, key: DASHBOARD_SECRET } } }
{{- if $values.postgres.enabled }}
- { name: DATABASE_URL, valueFrom: { secretKeyRef: { name: {{ $secret }}, key: DATABASE_URL } } }
{{- else }}
- { name: DATABASE_FILE, value: /var/lib/headgate/dashboard.db }
{{- end }}
{{- with $values.trustedProxies }}
- { name: TRUSTED_PROXIES, value: {{ join "," . | quote }} }
{{- end }}
- { name: LOCAL_PASSWORDS, value: {{ $values.localPasswords | quote }} }
{{- if $values.github.clientID }}
- { name: GITHUB_CLIENT_ID, value: {{ $values.github.clientID | quote }} }
- { name: GITHUB_CLIENT_SECRET, valueFrom: { secretKeyRef: { name: {{ $secret }}, key: GITHUB_CLIENT_SECRET } } }
- { name: GITHUB_URL, value: {{ $values.github.url | quote }} }
- { name: GITHUB_API_URL, value: {{ $values.github.apiURL | quote }} }
{{- end }}
{{- if $values.google.clientID }}
- { name: GOOGLE_CLIENT_ID, value: {{ $values.google.clientID | quote }} }
- { name: GOOGLE_CLIENT_SECRET, valueFrom: { secretKeyRef: { name: {{ $secret }}, key: GOOGLE_CLIENT_SECRET } } }
- { name: GOOGLE_ISSUER, value: {{ $values.google.issuer | quote }} }
{{- end }}
{{- /* The Secret may lack these keys: a mail server inside of the cluster needs no user, and further issuers are optional. */}}
{{- range list "OIDC_PROVIDERS" "SMTP_USERNAME" "SMTP_PASSWORD" }}
- { name: {{ . }}, valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }}, optional: true } } }
{{- end }}
- { name: SMTP_HOST, value: {{ $values.smtp.host | quote }} }
- { name: SMTP_PORT, value: {{ $values.smtp.port | int | quote }} }
- { name: SMTP_SECURITY, value: {{ $values.smtp.security }} }
- { name: MAIL_FROM, value: {{ $values.smtp.from | quote }} }
- { name: DEFAULT_PLAN, value: {{ $values.defaultPlan | quote }} }
- { name: ACCOUNT_BILLING, value: {{ $values.billing }} }
- { name: KEYS_NAMESPACE, value: {{ $values.keysNamespace | quote }} }
- { name: USAGE_URL, value: "http://{{ include "headgate.operator" . }}-usage.{{ .Release.Namespace }}.svc:9091" }
- { name: USAGE_TOKEN_FILE, value: /var/run/secrets/headgate-usage/token }
- { name: BILLING_CURRENCY, value: {{ .Values.billing.currency | quote }} }
- { name: BILLING_LOW_BALANCE, value: {{ .Values.billing.lowBalance | quote }} }
- { name: PAYMENTS, value: {{ $values.payments.provider }} }
{{- if include "headgate.hasPayments" . }}
- { name: PAYMENTS_URL, value: "http://{{ include "headgate.payments" . }}-checkout.{{ .Release.Namespace }}.svc:8092" }
- { name: PAYMENTS_TOKEN, valueFrom: { secretKeyRef: { name: {{ $values.payments.existingSecret }}, key: PAYMENTS_TOKEN } } }
{{- $amounts := list }}
{{- range $values.payments.amounts }}{{ $amounts = append $amounts (include "headgate.amount" .) }}{{ end }}
- { name: TOP_UP_AMOUNTS, value: {{ join "," $amounts | quote }} }
- { name: TOP_UP_LEAST, value: {{ include "headgate.amount" $values.payments.least | quote }} }
- { name: TOP_UP_MOST, value: {{ include "headgate.amount" $values.payments.most | quote }} }
{{- end }}
{{- include "headgate.commonEnv" (list . $values) }}
{{- end -}}

{{/* An amount as text; Helm would write a large number with an exponent. */}}
{{- define "headgate.amount" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ int64 . }}{{ end -}}
{{- end -}}

{{/* The environment of the payments program. */}}
{{- define "headgate.paymentsEnv" -}}
{{- $payments := .Values.dashboard.payments -}}
- { name: PORT, value: "8091" }
- { name: CHECKOUT_PORT, value: "8092" }
- { name: METRICS_PORT, value: "9090" }
- { name: DASHBOARD_URL, value: {{ .Values.dashboard.url | quote }} }
{{- with $payments.installation }}
- { name: INSTALLATION, value: {{ . | quote }} }
{{- end }}
- { name: BILLING_CURRENCY, value: {{ .Values.billing.currency | quote }} }
{{- range list "STRIPE_SECRET_KEY" "STRIPE_WEBHOOK_SECRET" "PAYMENTS_TOKEN" }}
- { name: {{ . }}, valueFrom: { secretKeyRef: { name: {{ $payments.existingSecret }}, key: {{ . }} } } }
{{- end }}
{{- with $payments.url }}
- { name: STRIPE_URL, value: {{ . | quote }} }
{{- end }}
{{- with .Values.dashboard.settings.logLevel }}
- { name: LOG_LEVEL, value: {{ . | quote }} }
{{- end }}
{{- include "headgate.commonEnv" (list . (dict "settings" dict "extraEnv" $payments.extraEnv)) }}
{{- end -}}

{{/* `true` with a payment provider, so with the payments program. */}}
{{- define "headgate.hasPayments" -}}
{{- if and .Values.dashboard.enabled (eq .Values.dashboard.payments.provider "stripe") }}true{{ end -}}
{{- end -}}

{{/* Host of dashboard.url, without a port. */}}
{{- define "headgate.dashboardHost" -}}
{{- regexReplaceAll "^https?://([^:/]+).*$" .Values.dashboard.url "${1}" -}}
{{- end -}}

{{/* Name of an object of the dashboard without a namespace. */}}
{{- define "headgate.dashboardClusterName" -}}{{ include "headgate.dashboard" . }}-{{ .Release.Namespace }}{{- end -}}

{{/* Fails for values that the dashboard could not work with, before anything is installed. */}}
{{- define "headgate.checkDashboard" -}}
{{- $values := .Values.dashboard -}}
{{- if not $values.url }}
{{- fail "dashboard.url: it is empty; links in mails and the ways back from providers are made of it. Set it to the address that people reach, for example --set dashboard.url=https://dashboard.example.net" }}
{{- end }}
{{- if not $values.existingSecret }}
{{- fail (printf "dashboard.existingSecret: it is empty. Run `kubectl create secret generic headgate-dashboard --namespace %s --from-literal=DASHBOARD_SECRET=\"$(openssl rand -base64 48)\" --from-literal=SMTP_USERNAME=USER --from-literal=SMTP_PASSWORD=PASSWORD`, and add --set dashboard.existingSecret=headgate-dashboard" .Release.Namespace) }}
{{- end }}
{{- if not (and $values.smtp.host $values.smtp.from) }}
{{- fail "dashboard.smtp.host and dashboard.smtp.from: without mail nobody could verify an address; set both, for example --set dashboard.smtp.host=smtp.example.net,dashboard.smtp.from='Headgate <no-reply@example.net>'" }}
{{- end }}
{{- if not .Values.gateway.publicURL }}
{{- fail "gateway.publicURL: the dashboard shows people where to call; set it to the address of the gateways that they reach, without /v1" }}
{{- end }}
{{- if ne (include "headgate.hasAccounts" .) "true" }}
{{- fail "dashboard.enabled needs accounts.enabled: true" }}
{{- end }}
{{- if and (gt (int $values.replicas) 1) (not $values.postgres.enabled) }}
{{- fail "dashboard.replicas: a database file has one writer, so more than one replica needs Postgres. Put the key DATABASE_URL (postgres://user:password@host:5432/database) into the Secret of dashboard.existingSecret and add --set dashboard.postgres.enabled=true, or set dashboard.replicas=1" }}
{{- end }}
{{- if and (or $values.ingress.enabled $values.httpRoute.enabled) (not $values.trustedProxies) }}
{{- fail "dashboard.trustedProxies: it is empty, so all people behind the proxy would share the limits of one client. Set it to the networks that the pods of your ingress controller or Gateway have, for example --set 'dashboard.trustedProxies={10.244.0.0/16}'" }}
{{- end }}
{{- $host := include "headgate.dashboardHost" . }}
{{- $gatewayHosts := concat .Values.gateway.ingress.hosts .Values.gateway.httpRoute.hostnames (list (regexReplaceAll "^https?://([^:/]+).*$" .Values.gateway.publicURL "${1}")) }}
{{- if has $host $gatewayHosts }}
{{- fail (printf "dashboard.url: %s is a host of the gateway too; cookies and content policy of the dashboard need a host of their own" $host) }}
{{- end }}
{{- if and (ne $values.payments.provider "none") (ne $values.billing "Prepaid") }}
{{- fail (printf "dashboard.payments.provider=%s: people pay into a balance, and Unmetered Accounts have none; add --set dashboard.billing=Prepaid" $values.payments.provider) }}
{{- end }}
{{- if and (eq $values.payments.provider "stripe") (not $values.payments.existingSecret) }}
{{- fail (printf "dashboard.payments.existingSecret: it is empty. Run `kubectl create secret generic headgate-payments --namespace %s --from-literal=STRIPE_SECRET_KEY=sk_… --from-literal=STRIPE_WEBHOOK_SECRET=whsec_… --from-literal=PAYMENTS_TOKEN=\"$(openssl rand -hex 24)\"`, and add --set dashboard.payments.existingSecret=headgate-payments" .Release.Namespace) }}
{{- end }}
{{- if eq $values.keysNamespace .Release.Namespace }}
{{- fail (printf "dashboard.keysNamespace: %s is the namespace of the release, whose Secrets are the operator's; choose another one" .Release.Namespace) }}
{{- end }}
{{- end -}}
