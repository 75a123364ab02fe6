{{- define "forebay.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "forebay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "forebay.labels" -}}
{{ include "forebay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "forebay.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "forebay.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "forebay.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
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
