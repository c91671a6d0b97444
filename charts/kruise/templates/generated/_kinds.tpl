{{- /* Made by `cargo xtask generate` from crates/core/src/features. Do not edit. */}}
{{/* Kinds that OpenKruise 1.9 stores as v1alpha1. */}}
{{- define "kruise.storedAsV1alpha1" -}}
CloneSet ContainerRecreateRequest PersistentPodState ResourceDistribution UnitedDeployment WorkloadSpread PodUnavailableBudget
{{- end }}
