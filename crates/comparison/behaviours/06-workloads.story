# Pods and workloads: defaults, rules, generations and subresources.

= A pod is defaulted
! 1.20: newer servers set the generation of pods
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i:v1", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}, "resources": {"limits": {"cpu": "0.1", "memory": "128Mi"}}, "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}], "volumes": [{"name": "e"}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "h", "hostPath": {"path": "/x"}}]}}
< 201
< apiVersion = "v1"
< kind = "Pod"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.automountServiceAccountToken = false
< spec.containers[0].image = "i"
< spec.containers[0].imagePullPolicy = "Always"
< spec.containers[0].name = "c"
< spec.containers[0].resources = {}
< spec.containers[0].terminationMessagePath = "/dev/termination-log"
< spec.containers[0].terminationMessagePolicy = "File"
< spec.containers[1].env[0].name = "N"
< spec.containers[1].env[0].valueFrom.fieldRef.apiVersion = "v1"
< spec.containers[1].env[0].valueFrom.fieldRef.fieldPath = "metadata.name"
< spec.containers[1].image = "i:v1"
< spec.containers[1].imagePullPolicy = "IfNotPresent"
< spec.containers[1].livenessProbe.failureThreshold = 3
< spec.containers[1].livenessProbe.httpGet.path = "/"
< spec.containers[1].livenessProbe.httpGet.port = 80
< spec.containers[1].livenessProbe.httpGet.scheme = "HTTP"
< spec.containers[1].livenessProbe.periodSeconds = 10
< spec.containers[1].livenessProbe.successThreshold = 1
< spec.containers[1].livenessProbe.timeoutSeconds = 1
< spec.containers[1].name = "d"
< spec.containers[1].ports[0].containerPort = 80
< spec.containers[1].ports[0].protocol = "TCP"
< spec.containers[1].resources.limits.cpu = "100m"
< spec.containers[1].resources.limits.memory = "128Mi"
< spec.containers[1].resources.requests.cpu = "100m"
< spec.containers[1].resources.requests.memory = "128Mi"
< spec.containers[1].terminationMessagePath = "/dev/termination-log"
< spec.containers[1].terminationMessagePolicy = "File"
< spec.dnsPolicy = "ClusterFirst"
< spec.enableServiceLinks = true
< spec.preemptionPolicy = "PreemptLowerPriority"
< spec.priority = 0
< spec.restartPolicy = "Always"
< spec.schedulerName = "none"
< spec.securityContext = {}
< spec.serviceAccount = "default"
< spec.serviceAccountName = "default"
< spec.terminationGracePeriodSeconds = 30
< spec.tolerations[0].effect = "NoExecute"
< spec.tolerations[0].key = "node.kubernetes.io/not-ready"
< spec.tolerations[0].operator = "Exists"
< spec.tolerations[0].tolerationSeconds = 300
< spec.tolerations[1].effect = "NoExecute"
< spec.tolerations[1].key = "node.kubernetes.io/unreachable"
< spec.tolerations[1].operator = "Exists"
< spec.tolerations[1].tolerationSeconds = 300
< spec.volumes[0].emptyDir = {}
< spec.volumes[0].name = "e"
< spec.volumes[1].name = "s"
< spec.volumes[1].secret.defaultMode = 420
< spec.volumes[1].secret.secretName = "s"
< spec.volumes[2].hostPath.path = "/x"
< spec.volumes[2].hostPath.type = ""
< spec.volumes[2].name = "h"
< status.phase = "Pending"
< status.qosClass = "Burstable"
<1.20 201
<1.20 apiVersion = "v1"
<1.20 kind = "Pod"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.name = "a"
<1.20 metadata.namespace = "$ns"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.automountServiceAccountToken = false
<1.20 spec.containers[0].image = "i"
<1.20 spec.containers[0].imagePullPolicy = "Always"
<1.20 spec.containers[0].name = "c"
<1.20 spec.containers[0].resources = {}
<1.20 spec.containers[0].terminationMessagePath = "/dev/termination-log"
<1.20 spec.containers[0].terminationMessagePolicy = "File"
<1.20 spec.containers[1].env[0].name = "N"
<1.20 spec.containers[1].env[0].valueFrom.fieldRef.apiVersion = "v1"
<1.20 spec.containers[1].env[0].valueFrom.fieldRef.fieldPath = "metadata.name"
<1.20 spec.containers[1].image = "i:v1"
<1.20 spec.containers[1].imagePullPolicy = "IfNotPresent"
<1.20 spec.containers[1].livenessProbe.failureThreshold = 3
<1.20 spec.containers[1].livenessProbe.httpGet.path = "/"
<1.20 spec.containers[1].livenessProbe.httpGet.port = 80
<1.20 spec.containers[1].livenessProbe.httpGet.scheme = "HTTP"
<1.20 spec.containers[1].livenessProbe.periodSeconds = 10
<1.20 spec.containers[1].livenessProbe.successThreshold = 1
<1.20 spec.containers[1].livenessProbe.timeoutSeconds = 1
<1.20 spec.containers[1].name = "d"
<1.20 spec.containers[1].ports[0].containerPort = 80
<1.20 spec.containers[1].ports[0].protocol = "TCP"
<1.20 spec.containers[1].resources.limits.cpu = "100m"
<1.20 spec.containers[1].resources.limits.memory = "128Mi"
<1.20 spec.containers[1].resources.requests.cpu = "100m"
<1.20 spec.containers[1].resources.requests.memory = "128Mi"
<1.20 spec.containers[1].terminationMessagePath = "/dev/termination-log"
<1.20 spec.containers[1].terminationMessagePolicy = "File"
<1.20 spec.dnsPolicy = "ClusterFirst"
<1.20 spec.enableServiceLinks = true
<1.20 spec.preemptionPolicy = "PreemptLowerPriority"
<1.20 spec.priority = 0
<1.20 spec.restartPolicy = "Always"
<1.20 spec.schedulerName = "none"
<1.20 spec.securityContext = {}
<1.20 spec.serviceAccount = "default"
<1.20 spec.serviceAccountName = "default"
<1.20 spec.terminationGracePeriodSeconds = 30
<1.20 spec.tolerations[0].effect = "NoExecute"
<1.20 spec.tolerations[0].key = "node.kubernetes.io/not-ready"
<1.20 spec.tolerations[0].operator = "Exists"
<1.20 spec.tolerations[0].tolerationSeconds = 300
<1.20 spec.tolerations[1].effect = "NoExecute"
<1.20 spec.tolerations[1].key = "node.kubernetes.io/unreachable"
<1.20 spec.tolerations[1].operator = "Exists"
<1.20 spec.tolerations[1].tolerationSeconds = 300
<1.20 spec.volumes[0].emptyDir = {}
<1.20 spec.volumes[0].name = "e"
<1.20 spec.volumes[1].name = "s"
<1.20 spec.volumes[1].secret.defaultMode = 420
<1.20 spec.volumes[1].secret.secretName = "s"
<1.20 spec.volumes[2].hostPath.path = "/x"
<1.20 spec.volumes[2].hostPath.type = ""
<1.20 spec.volumes[2].name = "h"
<1.20 status.phase = "Pending"
<1.20 status.qosClass = "Burstable"

= A deployment is defaulted
! 1.20: newer servers omit a creation timestamp that is not set
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a", "labels": {"l": "m"}}, "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
< 201
< apiVersion = "apps/v1"
< kind = "Deployment"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.labels.l = "m"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.progressDeadlineSeconds = 600
< spec.replicas = 1
< spec.revisionHistoryLimit = 10
< spec.selector.matchLabels.x = "y"
< spec.strategy.rollingUpdate.maxSurge = "25%"
< spec.strategy.rollingUpdate.maxUnavailable = "25%"
< spec.strategy.type = "RollingUpdate"
< spec.template.metadata.labels.x = "y"
< spec.template.spec.containers[0].image = "i"
< spec.template.spec.containers[0].imagePullPolicy = "Always"
< spec.template.spec.containers[0].name = "c"
< spec.template.spec.containers[0].resources = {}
< spec.template.spec.containers[0].terminationMessagePath = "/dev/termination-log"
< spec.template.spec.containers[0].terminationMessagePolicy = "File"
< spec.template.spec.dnsPolicy = "ClusterFirst"
< spec.template.spec.restartPolicy = "Always"
< spec.template.spec.schedulerName = "default-scheduler"
< spec.template.spec.securityContext = {}
< spec.template.spec.terminationGracePeriodSeconds = 30
< status = {}
<1.20 201
<1.20 apiVersion = "apps/v1"
<1.20 kind = "Deployment"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.generation = 1
<1.20 metadata.labels.l = "m"
<1.20 metadata.name = "a"
<1.20 metadata.namespace = "$ns"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.progressDeadlineSeconds = 600
<1.20 spec.replicas = 1
<1.20 spec.revisionHistoryLimit = 10
<1.20 spec.selector.matchLabels.x = "y"
<1.20 spec.strategy.rollingUpdate.maxSurge = "25%"
<1.20 spec.strategy.rollingUpdate.maxUnavailable = "25%"
<1.20 spec.strategy.type = "RollingUpdate"
<1.20 spec.template.metadata.creationTimestamp = null
<1.20 spec.template.metadata.labels.x = "y"
<1.20 spec.template.spec.containers[0].image = "i"
<1.20 spec.template.spec.containers[0].imagePullPolicy = "Always"
<1.20 spec.template.spec.containers[0].name = "c"
<1.20 spec.template.spec.containers[0].resources = {}
<1.20 spec.template.spec.containers[0].terminationMessagePath = "/dev/termination-log"
<1.20 spec.template.spec.containers[0].terminationMessagePolicy = "File"
<1.20 spec.template.spec.dnsPolicy = "ClusterFirst"
<1.20 spec.template.spec.restartPolicy = "Always"
<1.20 spec.template.spec.schedulerName = "default-scheduler"
<1.20 spec.template.spec.securityContext = {}
<1.20 spec.template.spec.terminationGracePeriodSeconds = 30
<1.20 status = {}

= A stateful set is defaulted
! 1.20: the PVC retention policy is newer
> POST /apis/apps/v1/namespaces/$ns/statefulsets
| {"metadata": {"name": "a"}, "spec": {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}}
< 201
< apiVersion = "apps/v1"
< kind = "StatefulSet"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.persistentVolumeClaimRetentionPolicy.whenDeleted = "Retain"
< spec.persistentVolumeClaimRetentionPolicy.whenScaled = "Retain"
< spec.podManagementPolicy = "OrderedReady"
< spec.replicas = 0
< spec.revisionHistoryLimit = 10
< spec.selector.matchLabels.x = "y"
< spec.serviceName = "s"
< spec.template.metadata.labels.x = "y"
< spec.template.spec.containers[0].image = "i"
< spec.template.spec.containers[0].imagePullPolicy = "Always"
< spec.template.spec.containers[0].name = "c"
< spec.template.spec.containers[0].resources = {}
< spec.template.spec.containers[0].terminationMessagePath = "/dev/termination-log"
< spec.template.spec.containers[0].terminationMessagePolicy = "File"
< spec.template.spec.dnsPolicy = "ClusterFirst"
< spec.template.spec.restartPolicy = "Always"
< spec.template.spec.schedulerName = "default-scheduler"
< spec.template.spec.securityContext = {}
< spec.template.spec.terminationGracePeriodSeconds = 30
< spec.updateStrategy.rollingUpdate.partition = 0
< spec.updateStrategy.type = "RollingUpdate"
< spec.volumeClaimTemplates[0].apiVersion = "v1"
< spec.volumeClaimTemplates[0].kind = "PersistentVolumeClaim"
< spec.volumeClaimTemplates[0].metadata.name = "v"
< spec.volumeClaimTemplates[0].spec.accessModes[0] = "ReadWriteOnce"
< spec.volumeClaimTemplates[0].spec.resources.requests.storage = "1Gi"
< spec.volumeClaimTemplates[0].spec.volumeMode = "Filesystem"
< spec.volumeClaimTemplates[0].status.phase = "Pending"
< status.availableReplicas = 0
< status.replicas = 0
<1.20 201
<1.20 apiVersion = "apps/v1"
<1.20 kind = "StatefulSet"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.generation = 1
<1.20 metadata.name = "a"
<1.20 metadata.namespace = "$ns"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.podManagementPolicy = "OrderedReady"
<1.20 spec.replicas = 0
<1.20 spec.revisionHistoryLimit = 10
<1.20 spec.selector.matchLabels.x = "y"
<1.20 spec.serviceName = "s"
<1.20 spec.template.metadata.creationTimestamp = null
<1.20 spec.template.metadata.labels.x = "y"
<1.20 spec.template.spec.containers[0].image = "i"
<1.20 spec.template.spec.containers[0].imagePullPolicy = "Always"
<1.20 spec.template.spec.containers[0].name = "c"
<1.20 spec.template.spec.containers[0].resources = {}
<1.20 spec.template.spec.containers[0].terminationMessagePath = "/dev/termination-log"
<1.20 spec.template.spec.containers[0].terminationMessagePolicy = "File"
<1.20 spec.template.spec.dnsPolicy = "ClusterFirst"
<1.20 spec.template.spec.restartPolicy = "Always"
<1.20 spec.template.spec.schedulerName = "default-scheduler"
<1.20 spec.template.spec.securityContext = {}
<1.20 spec.template.spec.terminationGracePeriodSeconds = 30
<1.20 spec.updateStrategy.rollingUpdate.partition = 0
<1.20 spec.updateStrategy.type = "RollingUpdate"
<1.20 spec.volumeClaimTemplates[0].apiVersion = "v1"
<1.20 spec.volumeClaimTemplates[0].kind = "PersistentVolumeClaim"
<1.20 spec.volumeClaimTemplates[0].metadata.creationTimestamp = null
<1.20 spec.volumeClaimTemplates[0].metadata.name = "v"
<1.20 spec.volumeClaimTemplates[0].spec.accessModes[0] = "ReadWriteOnce"
<1.20 spec.volumeClaimTemplates[0].spec.resources.requests.storage = "1Gi"
<1.20 spec.volumeClaimTemplates[0].spec.volumeMode = "Filesystem"
<1.20 spec.volumeClaimTemplates[0].status.phase = "Pending"
<1.20 status.replicas = 0

= A daemon set is defaulted
! 1.20: maxSurge of DaemonSets is newer
> POST /apis/apps/v1/namespaces/$ns/daemonsets
| {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"nodeSelector": {"no": "where"}, "containers": [{"name": "c", "image": "i"}]}}}}
? metadata spec.updateStrategy spec.revisionHistoryLimit status
< 201
< metadata.annotations["deprecated.daemonset.template.generation"] = "1"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.revisionHistoryLimit = 10
< spec.updateStrategy.rollingUpdate.maxSurge = 0
< spec.updateStrategy.rollingUpdate.maxUnavailable = 1
< spec.updateStrategy.type = "RollingUpdate"
< status.currentNumberScheduled = 0
< status.desiredNumberScheduled = 0
< status.numberMisscheduled = 0
< status.numberReady = 0
<1.20 201
<1.20 metadata.annotations["deprecated.daemonset.template.generation"] = "1"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.generation = 1
<1.20 metadata.name = "a"
<1.20 metadata.namespace = "$ns"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.revisionHistoryLimit = 10
<1.20 spec.updateStrategy.rollingUpdate.maxUnavailable = 1
<1.20 spec.updateStrategy.type = "RollingUpdate"
<1.20 status.currentNumberScheduled = 0
<1.20 status.desiredNumberScheduled = 0
<1.20 status.numberMisscheduled = 0
<1.20 status.numberReady = 0

= A job is defaulted
! 1.20: completion modes, suspend, the pod replacement policy and the prefixed labels are newer
> POST /apis/batch/v1/namespaces/$ns/jobs
| {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"schedulerName": "none", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
< 201
< apiVersion = "batch/v1"
< kind = "Job"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.labels["batch.kubernetes.io/controller-uid"] = "uid1"
< metadata.labels["batch.kubernetes.io/job-name"] = "a"
< metadata.labels.controller-uid = "uid1"
< metadata.labels.job-name = "a"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.backoffLimit = 6
< spec.completionMode = "NonIndexed"
< spec.completions = 1
< spec.manualSelector = false
< spec.parallelism = 1
< spec.podReplacementPolicy = "TerminatingOrFailed"
< spec.selector.matchLabels["batch.kubernetes.io/controller-uid"] = "uid1"
< spec.suspend = false
< spec.template.metadata.labels["batch.kubernetes.io/controller-uid"] = "uid1"
< spec.template.metadata.labels["batch.kubernetes.io/job-name"] = "a"
< spec.template.metadata.labels.controller-uid = "uid1"
< spec.template.metadata.labels.job-name = "a"
< spec.template.spec.containers[0].image = "i"
< spec.template.spec.containers[0].imagePullPolicy = "Always"
< spec.template.spec.containers[0].name = "c"
< spec.template.spec.containers[0].resources = {}
< spec.template.spec.containers[0].terminationMessagePath = "/dev/termination-log"
< spec.template.spec.containers[0].terminationMessagePolicy = "File"
< spec.template.spec.dnsPolicy = "ClusterFirst"
< spec.template.spec.restartPolicy = "Never"
< spec.template.spec.schedulerName = "none"
< spec.template.spec.securityContext = {}
< spec.template.spec.terminationGracePeriodSeconds = 30
< status = {}
<1.20 201
<1.20 apiVersion = "batch/v1"
<1.20 kind = "Job"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.labels.controller-uid = "uid1"
<1.20 metadata.labels.job-name = "a"
<1.20 metadata.name = "a"
<1.20 metadata.namespace = "$ns"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.backoffLimit = 6
<1.20 spec.completions = 1
<1.20 spec.parallelism = 1
<1.20 spec.selector.matchLabels.controller-uid = "uid1"
<1.20 spec.template.metadata.creationTimestamp = null
<1.20 spec.template.metadata.labels.controller-uid = "uid1"
<1.20 spec.template.metadata.labels.job-name = "a"
<1.20 spec.template.spec.containers[0].image = "i"
<1.20 spec.template.spec.containers[0].imagePullPolicy = "Always"
<1.20 spec.template.spec.containers[0].name = "c"
<1.20 spec.template.spec.containers[0].resources = {}
<1.20 spec.template.spec.containers[0].terminationMessagePath = "/dev/termination-log"
<1.20 spec.template.spec.containers[0].terminationMessagePolicy = "File"
<1.20 spec.template.spec.dnsPolicy = "ClusterFirst"
<1.20 spec.template.spec.restartPolicy = "Never"
<1.20 spec.template.spec.schedulerName = "none"
<1.20 spec.template.spec.securityContext = {}
<1.20 spec.template.spec.terminationGracePeriodSeconds = 30
<1.20 status = {}

= A service is defaulted
! 1.20: IP families and the internal traffic policy are newer
> POST /api/v1/namespaces/$ns/services
| {"metadata": {"name": "a"}, "spec": {"selector": {"x": "y"}, "ports": [{"port": 80}]}}
< 201
< apiVersion = "v1"
< kind = "Service"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.clusterIP = "IP"
< spec.clusterIPs[0] = "IP"
< spec.internalTrafficPolicy = "Cluster"
< spec.ipFamilies[0] = "IPv4"
< spec.ipFamilyPolicy = "SingleStack"
< spec.ports[0].port = 80
< spec.ports[0].protocol = "TCP"
< spec.ports[0].targetPort = 80
< spec.selector.x = "y"
< spec.sessionAffinity = "None"
< spec.type = "ClusterIP"
< status.loadBalancer = {}
<1.20 201
<1.20 apiVersion = "v1"
<1.20 kind = "Service"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.name = "a"
<1.20 metadata.namespace = "$ns"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.clusterIP = "IP"
<1.20 spec.clusterIPs[0] = "IP"
<1.20 spec.ports[0].port = 80
<1.20 spec.ports[0].protocol = "TCP"
<1.20 spec.ports[0].targetPort = 80
<1.20 spec.selector.x = "y"
<1.20 spec.sessionAffinity = "None"
<1.20 spec.type = "ClusterIP"
<1.20 status.loadBalancer = {}

= A headless service is defaulted
! 1.20: IP families and the internal traffic policy are newer
> POST /api/v1/namespaces/$ns/services
| {"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "selector": {"x": "y"}, "ports": [{"port": 80, "name": "web", "targetPort": "web"}]}}
< 201
< apiVersion = "v1"
< kind = "Service"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.clusterIP = "None"
< spec.clusterIPs[0] = "None"
< spec.internalTrafficPolicy = "Cluster"
< spec.ipFamilies[0] = "IPv4"
< spec.ipFamilyPolicy = "SingleStack"
< spec.ports[0].name = "web"
< spec.ports[0].port = 80
< spec.ports[0].protocol = "TCP"
< spec.ports[0].targetPort = "web"
< spec.selector.x = "y"
< spec.sessionAffinity = "None"
< spec.type = "ClusterIP"
< status.loadBalancer = {}
<1.20 201
<1.20 apiVersion = "v1"
<1.20 kind = "Service"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.name = "a"
<1.20 metadata.namespace = "$ns"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.clusterIP = "None"
<1.20 spec.clusterIPs[0] = "None"
<1.20 spec.ports[0].name = "web"
<1.20 spec.ports[0].port = 80
<1.20 spec.ports[0].protocol = "TCP"
<1.20 spec.ports[0].targetPort = "web"
<1.20 spec.selector.x = "y"
<1.20 spec.sessionAffinity = "None"
<1.20 spec.type = "ClusterIP"
<1.20 status.loadBalancer = {}

= A claim is defaulted
> POST /api/v1/namespaces/$ns/persistentvolumeclaims
| {"metadata": {"name": "a"}, "spec": {"storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}
< 201
< apiVersion = "v1"
< kind = "PersistentVolumeClaim"
< metadata.creationTimestamp = "TIME"
< metadata.finalizers[0] = "kubernetes.io/pvc-protection"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.accessModes[0] = "ReadWriteOnce"
< spec.resources.requests.storage = "1Gi"
< spec.storageClassName = "none"
< spec.volumeMode = "Filesystem"
< status.phase = "Pending"

= A pod without containers is refused
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"containers": []}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.containers"
< details.causes[0].message = "Required value"
< details.causes[0].reason = "FieldValueRequired"
< details.kind = "Pod"
< details.name = "a"
< kind = "Status"
< message = "Pod \"a\" is invalid: spec.containers: Required value"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= An invalid pod is rejected with all its errors
! 1.20: the order and the texts of two rules are different in newer servers
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"restartPolicy": "Sometimes", "containers": [{"name": "C", "image": ""}, {"name": "d", "image": "i", "imagePullPolicy": "Maybe", "ports": [{"containerPort": 70000}], "volumeMounts": [{"name": "no", "mountPath": "/x"}], "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.containers[0].name"
< details.causes[0].message = "Invalid value: \"C\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "spec.containers[0].image"
< details.causes[1].message = "Required value"
< details.causes[1].reason = "FieldValueRequired"
< details.causes[2].field = "spec.containers[1].ports[0].containerPort"
< details.causes[2].message = "Invalid value: 70000: must be between 1 and 65535, inclusive"
< details.causes[2].reason = "FieldValueInvalid"
< details.causes[3].field = "spec.containers[1].volumeMounts[0].name"
< details.causes[3].message = "Not found: \"no\""
< details.causes[3].reason = "FieldValueNotFound"
< details.causes[4].field = "spec.containers[1].imagePullPolicy"
< details.causes[4].message = "Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\""
< details.causes[4].reason = "FieldValueNotSupported"
< details.causes[5].field = "spec.containers[1].resources.requests"
< details.causes[5].message = "Invalid value: \"2\": must be less than or equal to cpu limit of 1"
< details.causes[5].reason = "FieldValueInvalid"
< details.causes[6].field = "spec.restartPolicy"
< details.causes[6].message = "Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\""
< details.causes[6].reason = "FieldValueNotSupported"
< details.kind = "Pod"
< details.name = "a"
< kind = "Status"
< message = "Pod \"a\" is invalid: [spec.containers[0].name: Invalid value: \"C\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec.containers[0].image: Required value, spec.containers[1].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive, spec.containers[1].volumeMounts[0].name: Not found: \"no\", spec.containers[1].imagePullPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\", spec.containers[1].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1, spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.containers[0].name"
<1.20 details.causes[0].message = "Invalid value: \"C\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.causes[1].field = "spec.containers[0].image"
<1.20 details.causes[1].message = "Required value"
<1.20 details.causes[1].reason = "FieldValueRequired"
<1.20 details.causes[2].field = "spec.containers[1].ports[0].containerPort"
<1.20 details.causes[2].message = "Invalid value: 70000: must be between 1 and 65535, inclusive"
<1.20 details.causes[2].reason = "FieldValueInvalid"
<1.20 details.causes[3].field = "spec.containers[1].volumeMounts[0].name"
<1.20 details.causes[3].message = "Not found: \"no\""
<1.20 details.causes[3].reason = "FieldValueNotFound"
<1.20 details.causes[4].field = "spec.containers[1].imagePullPolicy"
<1.20 details.causes[4].message = "Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\""
<1.20 details.causes[4].reason = "FieldValueNotSupported"
<1.20 details.causes[5].field = "spec.containers[1].resources.requests"
<1.20 details.causes[5].message = "Invalid value: \"2\": must be less than or equal to cpu limit"
<1.20 details.causes[5].reason = "FieldValueInvalid"
<1.20 details.causes[6].field = "spec.restartPolicy"
<1.20 details.causes[6].message = "Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\""
<1.20 details.causes[6].reason = "FieldValueNotSupported"
<1.20 details.kind = "Pod"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Pod \"a\" is invalid: [spec.containers[0].name: Invalid value: \"C\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec.containers[0].image: Required value, spec.containers[1].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive, spec.containers[1].volumeMounts[0].name: Not found: \"no\", spec.containers[1].imagePullPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\", spec.containers[1].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit, spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"]"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= Two containers of the same name are refused
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.containers[1].name"
< details.causes[0].message = "Duplicate value: \"c\""
< details.causes[0].reason = "FieldValueDuplicate"
< details.kind = "Pod"
< details.name = "a"
< kind = "Status"
< message = "Pod \"a\" is invalid: spec.containers[1].name: Duplicate value: \"c\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A quantity that cannot be read is refused
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "many"}}}]}}
- message
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A field of a wrong type is refused
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"containers": "none"}}
- message
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= Unknown fields are dropped
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "unknown": 1}, "data": {"k": "v"}, "spec": {"x": "y"}}
< 201
< apiVersion = "v1"
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= Most of a pod cannot change
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/pods/a
@ Content-Type: application/strategic-merge-patch+json
| {"spec": {"restartPolicy": "Never"}}
- message details.causes[0].message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec"
< details.causes[0].reason = "FieldValueForbidden"
< details.kind = "Pod"
< details.name = "a"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= The image of a pod can change
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/pods/a
@ Content-Type: application/strategic-merge-patch+json
| {"spec": {"containers": [{"name": "c", "image": "j"}]}}
? spec.containers[0].image
< 200
< spec.containers[0].image = "j"
> PATCH /api/v1/namespaces/$ns/pods/a
@ Content-Type: application/strategic-merge-patch+json
| {"spec": {"containers": [{"name": "d", "image": "j"}]}}
- details.causes[0].message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.containers"
< details.causes[0].reason = "FieldValueForbidden"
< details.kind = "Pod"
< details.name = "a"
< kind = "Status"
< message = "Pod \"a\" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A pod's status is written apart
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}}
? status.phase
< 201
< status.phase = "Pending"
> PATCH /api/v1/namespaces/$ns/pods/a
@ Content-Type: application/strategic-merge-patch+json
| {"status": {"phase": "Running"}}
? status.phase
< 200
< status.phase = "Pending"
> PATCH /api/v1/namespaces/$ns/pods/a/status
@ Content-Type: application/strategic-merge-patch+json
| {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "j"}]}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
? status.phase status.conditions[0].type status.conditions[0].status spec.containers[0].image metadata.labels
< 200
< metadata.labels.x = "y"
< spec.containers[0].image = "i"
< status.conditions[0].status = "True"
< status.conditions[0].type = "Ready"
< status.phase = "Running"

= A generation counts changes of the spec
> POST /apis/apps/v1/namespaces/$ns/replicasets
| {"metadata": {"name": "a", "generation": 9}, "spec": {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
? metadata.generation
< 201
< metadata.generation = 1
> PATCH /apis/apps/v1/namespaces/$ns/replicasets/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"l": "m"}}}
? metadata.generation
< 200
< metadata.generation = 1
> PATCH /apis/apps/v1/namespaces/$ns/replicasets/a
@ Content-Type: application/merge-patch+json
| {"spec": {"minReadySeconds": 5}}
? metadata.generation
< 200
< metadata.generation = 2
> PATCH /apis/apps/v1/namespaces/$ns/replicasets/a/status
@ Content-Type: application/merge-patch+json
| {"spec": {"minReadySeconds": 9}, "status": {"observedGeneration": 1}}
? metadata.generation spec.minReadySeconds
< 200
< metadata.generation = 2
< spec.minReadySeconds = 5

= The selector of a deployment cannot change
! 1.20: newer servers print values in JSON
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y", "z": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /apis/apps/v1/namespaces/$ns/deployments/a
@ Content-Type: application/merge-patch+json
| {"spec": {"selector": {"matchLabels": {"z": "1"}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.selector"
< details.causes[0].message = "Invalid value: {\"matchLabels\":{\"x\":\"y\",\"z\":\"1\"}}: field is immutable"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apps"
< details.kind = "Deployment"
< details.name = "a"
< kind = "Status"
< message = "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: {\"matchLabels\":{\"x\":\"y\",\"z\":\"1\"}}: field is immutable"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.selector"
<1.20 details.causes[0].message = "Invalid value: v1.LabelSelector{MatchLabels:map[string]string{\"x\":\"y\", \"z\":\"1\"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.group = "apps"
<1.20 details.kind = "Deployment"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{\"x\":\"y\", \"z\":\"1\"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= The selector of a deployment must match its template
! 1.20: newer servers print values in JSON
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "n"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.template.metadata.labels"
< details.causes[0].message = "Invalid value: {\"x\":\"n\"}: `selector` does not match template `labels`"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apps"
< details.kind = "Deployment"
< details.name = "a"
< kind = "Status"
< message = "Deployment.apps \"a\" is invalid: spec.template.metadata.labels: Invalid value: {\"x\":\"n\"}: `selector` does not match template `labels`"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.template.metadata.labels"
<1.20 details.causes[0].message = "Invalid value: map[string]string{\"x\":\"n\"}: `selector` does not match template `labels`"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.group = "apps"
<1.20 details.kind = "Deployment"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Deployment.apps \"a\" is invalid: spec.template.metadata.labels: Invalid value: map[string]string{\"x\":\"n\"}: `selector` does not match template `labels`"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= A deployment without a spec is rejected
! 1.20: newer servers print values in JSON
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.selector"
< details.causes[0].message = "Required value"
< details.causes[0].reason = "FieldValueRequired"
< details.causes[1].field = "spec.template.metadata.labels"
< details.causes[1].message = "Invalid value: null: `selector` does not match template `labels`"
< details.causes[1].reason = "FieldValueInvalid"
< details.causes[2].field = "spec.template.spec.containers"
< details.causes[2].message = "Required value"
< details.causes[2].reason = "FieldValueRequired"
< details.group = "apps"
< details.kind = "Deployment"
< details.name = "a"
< kind = "Status"
< message = "Deployment.apps \"a\" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.selector"
<1.20 details.causes[0].message = "Required value"
<1.20 details.causes[0].reason = "FieldValueRequired"
<1.20 details.causes[1].field = "spec.template.metadata.labels"
<1.20 details.causes[1].message = "Invalid value: map[string]string(nil): `selector` does not match template `labels`"
<1.20 details.causes[1].reason = "FieldValueInvalid"
<1.20 details.causes[2].field = "spec.template.spec.containers"
<1.20 details.causes[2].message = "Required value"
<1.20 details.causes[2].reason = "FieldValueRequired"
<1.20 details.group = "apps"
<1.20 details.kind = "Deployment"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Deployment.apps \"a\" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`, spec.template.spec.containers: Required value]"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= Negative numbers and invalid percentages are rejected
! 1.20: newer servers print values in JSON
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a"}, "spec": {"replicas": -1, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}, "minReadySeconds": -2, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.replicas"
< details.causes[0].message = "Invalid value: -1: must be greater than or equal to 0"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "spec.strategy.rollingUpdate.maxUnavailable"
< details.causes[1].message = "Invalid value: 0: may not be 0 when `maxSurge` is 0"
< details.causes[1].reason = "FieldValueInvalid"
< details.causes[2].field = "spec.minReadySeconds"
< details.causes[2].message = "Invalid value: -2: must be greater than or equal to 0"
< details.causes[2].reason = "FieldValueInvalid"
< details.group = "apps"
< details.kind = "Deployment"
< details.name = "a"
< kind = "Status"
< message = "Deployment.apps \"a\" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0, spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.replicas"
<1.20 details.causes[0].message = "Invalid value: -1: must be greater than or equal to 0"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.causes[1].field = "spec.strategy.rollingUpdate.maxUnavailable"
<1.20 details.causes[1].message = "Invalid value: intstr.IntOrString{Type:0, IntVal:0, StrVal:\"\"}: may not be 0 when `maxSurge` is 0"
<1.20 details.causes[1].reason = "FieldValueInvalid"
<1.20 details.causes[2].field = "spec.minReadySeconds"
<1.20 details.causes[2].message = "Invalid value: -2: must be greater than or equal to 0"
<1.20 details.causes[2].reason = "FieldValueInvalid"
<1.20 details.group = "apps"
<1.20 details.kind = "Deployment"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Deployment.apps \"a\" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.strategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:0, IntVal:0, StrVal:\"\"}: may not be 0 when `maxSurge` is 0, spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0]"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= Few fields of a stateful set can change
! 1.20: newer servers allow changes of more fields
> POST /apis/apps/v1/namespaces/$ns/statefulsets
| {"metadata": {"name": "a"}, "spec": {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /apis/apps/v1/namespaces/$ns/statefulsets/a
@ Content-Type: application/merge-patch+json
| {"spec": {"serviceName": "t"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec"
< details.causes[0].message = "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
< details.causes[0].reason = "FieldValueForbidden"
< details.group = "apps"
< details.kind = "StatefulSet"
< details.name = "a"
< kind = "Status"
< message = "StatefulSet.apps \"a\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec"
<1.20 details.causes[0].message = "Forbidden: updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden"
<1.20 details.causes[0].reason = "FieldValueForbidden"
<1.20 details.group = "apps"
<1.20 details.kind = "StatefulSet"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "StatefulSet.apps \"a\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= The template of a job cannot change
> POST /apis/batch/v1/namespaces/$ns/jobs
| {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"schedulerName": "none", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /apis/batch/v1/namespaces/$ns/jobs/a
@ Content-Type: application/strategic-merge-patch+json
| {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}}
- message details.causes[0].message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.template"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "batch"
< details.kind = "Job"
< details.name = "a"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A job wants a restart policy that ends
> POST /apis/batch/v1/namespaces/$ns/jobs
| {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.template.spec.restartPolicy"
< details.causes[0].message = "Required value: valid values: \"OnFailure\", \"Never\""
< details.causes[0].reason = "FieldValueRequired"
< details.group = "batch"
< details.kind = "Job"
< details.name = "a"
< kind = "Status"
< message = "Job.batch \"a\" is invalid: spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A scale is read and written
> POST /apis/apps/v1/namespaces/$ns/replicasets
| {"metadata": {"name": "a"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}}}}
? metadata.generation
< 201
< metadata.generation = 1
> GET /apis/apps/v1/namespaces/$ns/replicasets/a/scale
- metadata.resourceVersion
< 200
< apiVersion = "autoscaling/v1"
< kind = "Scale"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.uid = "uid1"
< spec = {}
< status.replicas = 0
< status.selector = "x=y"
> PUT /apis/apps/v1/namespaces/$ns/replicasets/a/scale
| {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "$ns"}, "spec": {"replicas": 1}}
- metadata.resourceVersion
< 200
< apiVersion = "autoscaling/v1"
< kind = "Scale"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.uid = "uid1"
< spec.replicas = 1
< status.replicas = 0
< status.selector = "x=y"
> PATCH /apis/apps/v1/namespaces/$ns/replicasets/a/scale
@ Content-Type: application/merge-patch+json
| {"spec": {"replicas": 2}}
? spec
< 200
< spec.replicas = 2
> GET /apis/apps/v1/namespaces/$ns/replicasets/a
? metadata.generation spec.replicas
< 200
< metadata.generation = 3
< spec.replicas = 2

= A scale cannot be negative
! 1.20: newer servers name the resource without the subresource
> POST /apis/apps/v1/namespaces/$ns/replicasets
| {"metadata": {"name": "a"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
? metadata.generation
< 201
< metadata.generation = 1
> PATCH /apis/apps/v1/namespaces/$ns/replicasets/a/scale
@ Content-Type: application/merge-patch+json
| {"spec": {"replicas": -2}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.replicas"
< details.causes[0].message = "Invalid value: -2: must be greater than or equal to 0"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "autoscaling"
< details.kind = "Scale"
< details.name = "a"
< kind = "Status"
< message = "Scale.autoscaling \"a\" is invalid: spec.replicas: Invalid value: -2: must be greater than or equal to 0"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> GET /apis/apps/v1/namespaces/$ns/replicasets/nothing/scale
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.group = "apps"
< details.kind = "replicasets"
< details.name = "nothing"
< kind = "Status"
< message = "replicasets.apps \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
<1.20 404 NotFound
<1.20 apiVersion = "v1"
<1.20 code = 404
<1.20 details.group = "apps"
<1.20 details.kind = "replicasets/scale"
<1.20 details.name = "nothing"
<1.20 kind = "Status"
<1.20 message = "replicasets/scale.apps \"nothing\" not found"
<1.20 metadata = {}
<1.20 reason = "NotFound"
<1.20 status = "Failure"

= A pod is bound once
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> POST /api/v1/namespaces/$ns/pods/a/binding
| {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a", "annotations": {"by": "me"}}, "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}}
< 201
< apiVersion = "v1"
< code = 201
< kind = "Status"
< metadata = {}
< status = "Success"
> GET /api/v1/namespaces/$ns/pods/a
? spec.nodeName metadata.annotations status.conditions[0].type status.conditions[0].status
< 200
< metadata.annotations.by = "me"
< spec.nodeName = "nowhere"
< status.conditions[0].status = "True"
< status.conditions[0].type = "PodScheduled"
> POST /api/v1/namespaces/$ns/pods/a/binding
| {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "elsewhere"}}
< 409 Conflict
< apiVersion = "v1"
< code = 409
< details.kind = "pods/binding"
< details.name = "a"
< kind = "Status"
< message = "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"nowhere\""
< metadata = {}
< reason = "Conflict"
< status = "Failure"
> POST /api/v1/namespaces/$ns/pods/nothing/binding
| {"metadata": {"name": "nothing"}, "target": {"kind": "Node", "name": "elsewhere"}}
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "pods"
< details.name = "nothing"
< kind = "Status"
< message = "pods \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> POST /api/v1/namespaces/$ns/pods/a/binding
| {"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "elsewhere"}}
< 500
< apiVersion = "v1"
< code = 500
< kind = "Status"
< message = "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\""
< metadata = {}
< status = "Failure"

= A pod is evicted
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> POST /api/v1/namespaces/$ns/pods/a/eviction
| {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "$ns"}, "deleteOptions": {"gracePeriodSeconds": 5}}
< 201
< apiVersion = "v1"
< code = 201
< kind = "Status"
< metadata = {}
< status = "Success"
> GET /api/v1/namespaces/$ns/pods/a
? metadata.deletionGracePeriodSeconds metadata.deletionTimestamp
< 200
< metadata.deletionGracePeriodSeconds = 5
< metadata.deletionTimestamp = "TIME"
> POST /api/v1/namespaces/$ns/pods/nothing/eviction
| {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "nothing"}}
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "pods"
< details.name = "nothing"
< kind = "Status"
< message = "pods \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> POST /api/v1/namespaces/$ns/pods/a/eviction
| {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "b"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "name in URL does not match name in Eviction object"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A container that is not in the pod has no log
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/pods/a/log?container=x
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "container x is not valid for pod a"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> GET /api/v1/namespaces/$ns/pods/a/log
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "a container name must be specified for pod a, choose one of: [c d]"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A PodDisruptionBudget forbids an eviction
! from 1.22: PodDisruptionBudgets had the version v1beta1, which was removed in 1.25
> POST /apis/policy/v1/namespaces/$ns/poddisruptionbudgets
| {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"x": "y"}}}}
? spec metadata.generation status
< 201
< metadata.generation = 1
< spec.minAvailable = 1
< spec.selector.matchLabels.x = "y"
< status.currentHealthy = 0
< status.desiredHealthy = 0
< status.disruptionsAllowed = 0
< status.expectedPods = 0
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/pods/a/status
@ Content-Type: application/merge-patch+json
| {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
? status.phase
< 200
< status.phase = "Running"
> GET /apis/policy/v1/namespaces/$ns/poddisruptionbudgets/b
* until status.currentHealthy = 1
? status.currentHealthy status.desiredHealthy status.disruptionsAllowed status.expectedPods
< 200
< status.currentHealthy = 1
< status.desiredHealthy = 1
< status.disruptionsAllowed = 0
< status.expectedPods = 1
> POST /api/v1/namespaces/$ns/pods/a/eviction
| {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
< 429 TooManyRequests
< apiVersion = "v1"
< code = 429
< details.causes[0].message = "The disruption budget b needs 1 healthy pods and has 1 currently"
< details.causes[0].reason = "DisruptionBudget"
< kind = "Status"
< message = "Cannot evict pod as it would violate the pod's disruption budget."
< metadata = {}
< reason = "TooManyRequests"
< status = "Failure"
> POST /apis/policy/v1/namespaces/$ns/poddisruptionbudgets
| {"metadata": {"name": "c"}, "spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"x": "y"}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec"
< details.causes[0].message = "Invalid value: {\"MinAvailable\":1,\"Selector\":{\"matchLabels\":{\"x\":\"y\"}},\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "policy"
< details.kind = "PodDisruptionBudget"
< details.name = "c"
< kind = "Status"
< message = "PodDisruptionBudget.policy \"c\" is invalid: spec: Invalid value: {\"MinAvailable\":1,\"Selector\":{\"matchLabels\":{\"x\":\"y\"}},\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A pod with two PodDisruptionBudgets cannot be evicted
! from 1.22: PodDisruptionBudgets had the version v1beta1, which was removed in 1.25
> POST /apis/policy/v1/namespaces/$ns/poddisruptionbudgets
| {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"x": "y"}}}}
? spec
< 201
< spec.maxUnavailable = 1
< spec.selector.matchLabels.x = "y"
> POST /apis/policy/v1/namespaces/$ns/poddisruptionbudgets
| {"metadata": {"name": "c"}, "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"x": "y"}}}}
? spec
< 201
< spec.maxUnavailable = "50%"
< spec.selector.matchLabels.x = "y"
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/pods/a/status
@ Content-Type: application/merge-patch+json
| {"status": {"phase": "Running"}}
? status.phase
< 200
< status.phase = "Running"
> POST /api/v1/namespaces/$ns/pods/a/eviction
| {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
< 500
< apiVersion = "v1"
< code = 500
< kind = "Status"
< message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
< metadata = {}
< status = "Failure"
