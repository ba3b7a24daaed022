{{- define "mooring.name" -}}
{{ .Values.name | default .Release.Name }}
{{- end }}

{{- define "mooring.selector" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/instance: {{ include "mooring.name" . }}
{{- end }}

{{- define "mooring.labels" -}}
{{ include "mooring.selector" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mooring.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Outside kube-system many clusters forbid the system's classes by a ResourceQuota. */ -}}
{{- define "mooring.priorityClassName" -}}
{{- if .Values.priorityClassName }}{{ .Values.priorityClassName }}
{{- else if eq .Release.Namespace "kube-system" }}system-cluster-critical
{{- end }}
{{- end }}
