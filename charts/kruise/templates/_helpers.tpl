{{/* The image of the manager. */}}
{{- define "kruise.managerImage" -}}
{{- $image := .Values.manager.image -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The image of the daemon: that of the manager unless it has one of its own. */}}
{{- define "kruise.daemonImage" -}}
{{- $own := .Values.daemon.image | default dict -}}
{{- $shared := .Values.manager.image -}}
{{- if $own.repository -}}
{{ $own.repository }}:{{ $own.tag | default .Chart.AppVersion }}
{{- else -}}
{{ $shared.repository }}:{{ $own.tag | default $shared.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Images that the pods use and that are those of OpenKruise. */}}
{{- define "kruise.foreignImage" -}}
{{- $repository := index (splitList "@" .) 0 | regexFind "^(.*/)?[^/:]+" -}}
{{- if hasSuffix "/openkruise/kruise-manager" (printf "/%s" $repository) }}{{ . }}{{ end -}}
{{- end }}

{{/* Pull secrets: names and objects. */}}
{{- define "kruise.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ .name }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The failure policy of the pod webhooks. `webhookConfiguration.failurePolicy.pods` is what charts up to 1.5 called it. */}}
{{- define "kruise.podFailurePolicy" -}}
{{- $old := .Values.webhookConfiguration.failurePolicy | default dict -}}
{{ .Values.webhookConfiguration.podFailurePolicy | default $old.pods | default "Fail" }}
{{- end }}

{{/* Whether a namespace lacks the label by which the pod webhooks leave it alone. Empty where nobody can say. */}}
{{- define "kruise.namespaceWithoutLabel" -}}
{{- if not .Values.installation.createNamespace -}}
{{- $found := lookup "v1" "Namespace" "" .Values.installation.namespace -}}
{{- if and $found (ne (dig "metadata" "labels" "control-plane" "" $found) "openkruise") }}true{{ end -}}
{{- end -}}
{{- end }}

{{/* Pod Security levels of the installation namespace: daemons use the network and folders of their node. */}}
{{- define "kruise.podSecurityLevel" -}}
{{- $gates := include "kruise.gates" . | fromJson -}}
{{- if or $gates.KruiseDaemon .Values.manager.hostNetwork }}privileged{{ else }}restricted{{ end -}}
{{- end }}
