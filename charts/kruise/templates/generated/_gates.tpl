{{- /* Made by `cargo xtask generate` from crates/core/src/features. Do not edit. */}}
{{/* Which gates are open, as JSON: `.Values.featureGates` after the rules between gates. */}}
{{- define "kruise.gates" -}}
{{- $gates := fromJson `{
  "PodWebhook": true,
  "KruiseDaemon": true,
  "DaemonWatchingPod": true,
  "CloneSetShortHash": false,
  "KruisePodReadinessGate": false,
  "PreDownloadImageForInPlaceUpdate": false,
  "PreDownloadImageForDaemonSetUpdate": false,
  "CloneSetPartitionRollback": false,
  "ResourcesDeletionProtection": false,
  "DeletionProtectionForCRDCascadingGate": false,
  "WorkloadSpread": true,
  "PodUnavailableBudgetDeleteGate": true,
  "PodUnavailableBudgetUpdateGate": false,
  "InPlacePodVerticalScaling": false,
  "InPlaceWorkloadVerticalScaling": false,
  "TemplateNoDefaults": false,
  "DefaultHostNetworkHostPortsInPodTemplates": false,
  "InPlaceUpdateEnvFromMetadata": true,
  "StatefulSetAutoDeletePVC": true,
  "StatefulSetStartOrdinal": false,
  "PodIndexLabel": true,
  "StatefulSetAutoResizePVCGate": false,
  "DaemonSetPruneIneligibleNodes": false,
  "SidecarSetPatchPodMetadataDefaultsAllowed": false,
  "EnableSortSidecarContainerByName": false,
  "SidecarTerminator": false,
  "PodProbeMarkerGate": true,
  "EnablePodProbeMarkerOnServerless": false,
  "EnhancedLivenessProbe": false,
  "CloneSetEventHandlerOptimization": false,
  "PreparingUpdateAsUpdate": false,
  "ImagePullJobGate": false,
  "ResourceDistributionGate": false,
  "RecreatePodWhenChangeVCTInCloneSetGate": false,
  "EnableExternalCerts": false,
  "ForceDeleteTimeoutExpectationGate": false
}` -}}
{{- $aliases := fromJson `{"EnhancedLivenessProbeGate":"EnhancedLivenessProbe","ForceDeleteTimeoutExpectationFeatureGate":"ForceDeleteTimeoutExpectationGate"}` -}}
{{- $stages := fromJson `{"AllAlpha":["CloneSetShortHash","KruisePodReadinessGate","PreDownloadImageForInPlaceUpdate","PreDownloadImageForDaemonSetUpdate","CloneSetPartitionRollback","DeletionProtectionForCRDCascadingGate","PodUnavailableBudgetUpdateGate","InPlacePodVerticalScaling","InPlaceWorkloadVerticalScaling","TemplateNoDefaults","DefaultHostNetworkHostPortsInPodTemplates","StatefulSetStartOrdinal","StatefulSetAutoResizePVCGate","DaemonSetPruneIneligibleNodes","SidecarSetPatchPodMetadataDefaultsAllowed","EnableSortSidecarContainerByName","SidecarTerminator","EnablePodProbeMarkerOnServerless","EnhancedLivenessProbe","CloneSetEventHandlerOptimization","PreparingUpdateAsUpdate","ImagePullJobGate","RecreatePodWhenChangeVCTInCloneSetGate","ForceDeleteTimeoutExpectationGate"],"AllBeta":["PodWebhook","KruiseDaemon","DaemonWatchingPod","ResourcesDeletionProtection","WorkloadSpread","PodUnavailableBudgetDeleteGate","InPlaceUpdateEnvFromMetadata","StatefulSetAutoDeletePVC","PodIndexLabel","PodProbeMarkerGate","ResourceDistributionGate"]}` -}}
{{- $single := dict -}}
{{- range splitList "," (.Values.featureGates | default "") -}}
{{- if trim . -}}
{{- $parts := splitn "=" 2 . -}}
{{- $name := trim $parts._0 -}}
{{- $name = get $aliases $name | default $name -}}
{{- $value := trim ($parts._1 | default "") -}}
{{- $open := has $value (list "1" "t" "T" "true" "TRUE" "True") -}}
{{- if not (or $open (has $value (list "0" "f" "F" "false" "FALSE" "False"))) -}}
{{- fail (printf "featureGates: invalid value of %s; write %s=true or %s=false" $name $name $name) -}}
{{- else if hasKey $gates $name -}}
{{- $_ := set $single $name $open -}}
{{- else if hasKey $stages $name -}}
{{- range get $stages $name -}}{{- $_ := set $gates . $open -}}{{- end -}}
{{- else -}}
{{- fail (printf "featureGates: unrecognized feature gate %s" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $gates = mergeOverwrite $gates $single -}}
{{- if not $gates.PodWebhook -}}{{- range list "KruisePodReadinessGate" "PodUnavailableBudgetDeleteGate" "PodUnavailableBudgetUpdateGate" "WorkloadSpread" "SidecarSetPatchPodMetadataDefaultsAllowed" "EnhancedLivenessProbe" "EnablePodProbeMarkerOnServerless" -}}{{- $_ := set $gates . false -}}{{- end -}}{{- end -}}
{{- if not $gates.KruiseDaemon -}}{{- range list "PreDownloadImageForInPlaceUpdate" "PreDownloadImageForDaemonSetUpdate" "DaemonWatchingPod" "InPlaceUpdateEnvFromMetadata" "PodProbeMarkerGate" "SidecarTerminator" "ImagePullJobGate" "EnhancedLivenessProbe" -}}{{- $_ := set $gates . false -}}{{- end -}}{{- end -}}
{{- if or $gates.PreDownloadImageForInPlaceUpdate $gates.PreDownloadImageForDaemonSetUpdate -}}{{- range list "ImagePullJobGate" -}}{{- $_ := set $gates . true -}}{{- end -}}{{- end -}}
{{- if not $gates.ResourcesDeletionProtection -}}{{- range list "DeletionProtectionForCRDCascadingGate" -}}{{- $_ := set $gates . false -}}{{- end -}}{{- end -}}
{{- toJson $gates -}}
{{- end }}
