{{- /*
The configuration with all names stated, as YAML: the profile is named after the release if `config`
names none, and the lease after the first profile, so that all who would schedule the same pods agree
on one of them.
*/ -}}
{{- define "mooring.config" -}}
{{- $config := dict }}
{{- if kindIs "string" .Values.config }}
{{- $config = fromYaml .Values.config }}
{{- if hasKey $config "Error" }}{{ fail (printf "config: %s" $config.Error) }}{{ end }}
{{- else }}
{{- $config = deepCopy .Values.config }}
{{- end }}
{{- $config = merge $config (dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration") }}
{{- $profiles := $config.profiles | default (list dict) }}
{{- if and (eq (len $profiles) 1) (not (first $profiles).schedulerName) }}
{{- $profiles = list (merge (dict "schedulerName" (include "mooring.name" .)) (first $profiles)) }}
{{- end }}
{{- $election := $config.leaderElection | default dict }}
{{- if not (hasKey $election "leaderElect") }}{{ $_ := set $election "leaderElect" true }}{{ end }}
{{- if $election.leaderElect }}
{{- if not $election.resourceName }}{{ $_ := set $election "resourceName" (first $profiles).schedulerName }}{{ end }}
{{- if not $election.resourceNamespace }}{{ $_ := set $election "resourceNamespace" .Release.Namespace }}{{ end }}
{{- if and (eq $election.resourceName "kube-scheduler") (eq $election.resourceNamespace "kube-system") }}
{{- fail "config.leaderElection.resourceName: the lease kube-system/kube-scheduler belongs to kube-scheduler" }}
{{- end }}
{{- else if gt (int (.Values.replicas | default 1)) 1 }}
{{- fail (printf "config.leaderElection.leaderElect: must be true for %d replicas: each of them would schedule the same pods" (int .Values.replicas)) }}
{{- end }}
{{- $_ := set $config "profiles" $profiles }}
{{- $_ := set $config "leaderElection" $election }}
{{- toYaml $config }}
{{- end }}
