{{- define "forebay.chartName" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "forebay.name" -}}
{{- $chart := include "forebay.chartName" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "forebay.selector" -}}
app.kubernetes.io/name: {{ include "forebay.chartName" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The pod of helm test. */}}
{{- define "forebay.testSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "forebay.labels" -}}
{{ include "forebay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The annotations of every object: an empty text, or the whole field. */}}
{{- define "forebay.annotations" -}}
{{- with .Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "forebay.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "forebay.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "forebay.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "forebay.hasRedis" -}}
{{- if or .Values.redis.url .Values.redis.existingSecret.name (dig "cache" "redis" "" .Values.config) -}}true{{- end -}}
{{- end -}}

{{/* Without Redis a polled filter lives in one replica: all requests of a client must go there. */}}
{{- define "forebay.sessionAffinity" -}}
{{- .Values.service.sessionAffinity | default (ternary "None" "ClientIP" (eq (include "forebay.hasRedis" .) "true")) -}}
{{- end -}}

{{- define "forebay.ownSecret" -}}
{{- if or .Values.secrets .Values.redis.url -}}true{{- end -}}
{{- end -}}

{{/* A variable that is named twice is refused by some clients of Kubernetes. */}}
{{- define "forebay.ownDataDir" -}}
{{- range .Values.extraEnv }}{{ if eq .name "FOREBAY_DATA_DIR" }}true{{ end }}{{ end -}}
{{- end -}}

{{/* Bytes of a quantity of Kubernetes. */}}
{{- define "forebay.bytes" -}}
{{- $number := regexFind "^[0-9.]+" . | float64 -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- mulf $number (get $units (regexFind "[a-zA-Z]*$" .)) | int64 -}}
{{- end -}}

{{/* Combinations that a schema cannot compare. */}}
{{- define "forebay.validate" -}}
{{- $drain := add (.Values.config.server.drainDelayMs | default 5000 | int) (.Values.config.server.drainTimeoutMs | default 35000 | int) -}}
{{- $end := add $drain (ternary 12000 0 .Values.storage.enabled) -}}
{{- if lt (mul .Values.terminationGracePeriodSeconds 1000 | int) (int $end) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d s is less than the %d ms that draining and writing the data folder take" (int .Values.terminationGracePeriodSeconds) (int $end)) -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.hosts: an ingress needs one or more hosts" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: a route needs one or more gateways" -}}
{{- end -}}
{{- if and .Values.storage.existingClaim (or (ne (int .Values.replicaCount) 1) .Values.autoscaling.enabled) -}}
{{- fail "storage.existingClaim: replicas cannot share a data folder: set replicaCount to 1" -}}
{{- end -}}
{{- $diskBytes := dig "cache" "diskBytes" 2147483648 .Values.config | int64 -}}
{{- if and .Values.storage.enabled (not .Values.storage.existingClaim) (gt $diskBytes (include "forebay.bytes" .Values.storage.size | int64)) -}}
{{- fail (printf "storage.size: %s is less than the %d bytes of config.cache.diskBytes" .Values.storage.size $diskBytes) -}}
{{- end -}}
{{- if and .Values.redis.url .Values.redis.existingSecret.name -}}
{{- fail "redis: set url or existingSecret, not both" -}}
{{- end -}}
{{- $isSeveral := or (gt (int .Values.replicaCount) 1) .Values.autoscaling.enabled -}}
{{- if and (dig "access" "payment" "" .Values.config) $isSeveral (ne (include "forebay.hasRedis" .) "true") -}}
{{- fail "config.access.payment: several replicas need a Redis, which reserves each payment" -}}
{{- end -}}
{{- if and (dig "cache" "redis" "" .Values.config) (or .Values.redis.url .Values.redis.existingSecret.name) -}}
{{- fail "redis: set config.cache.redis or the values under redis, not both" -}}
{{- end -}}
{{- end -}}
