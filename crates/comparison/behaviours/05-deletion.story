# Deleting: preconditions, finalizers, grace and owners.

= A deleted object is answered with a status
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.uid
< 201
< metadata.uid = "uid1"
> DELETE /api/v1/namespaces/$ns/configmaps/a
< 200
< apiVersion = "v1"
< details.kind = "configmaps"
< details.name = "a"
< details.uid = "uid1"
< kind = "Status"
< metadata = {}
< status = "Success"
> GET /api/v1/namespaces/$ns/configmaps/a
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"

= Some kinds are answered with the deleted object
> POST /api/v1/namespaces/$ns/serviceaccounts
| {"metadata": {"name": "a"}, "automountServiceAccountToken": false}
? metadata.uid
< 201
< metadata.uid = "uid1"
> DELETE /api/v1/namespaces/$ns/serviceaccounts/a
- secrets metadata.resourceVersion
< 200
< apiVersion = "v1"
< automountServiceAccountToken = false
< kind = "ServiceAccount"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.uid = "uid1"

= A deletion of another uid is a conflict
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
& uid /metadata/uid
? metadata.uid
< 201
< metadata.uid = "uid1"
> DELETE /api/v1/namespaces/$ns/configmaps/a
| {"preconditions": {"uid": "b17d2c5e-0000-4000-8000-000000000000"}}
< 409 Conflict
< apiVersion = "v1"
< code = 409
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (b17d2c5e-0000-4000-8000-000000000000) does not match the UID in record (uid1). The object might have been deleted and then recreated"
< metadata = {}
< reason = "Conflict"
< status = "Failure"
> DELETE /api/v1/namespaces/$ns/configmaps/a
| {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "$uid"}}
< 200
< apiVersion = "v1"
< details.kind = "configmaps"
< details.name = "a"
< details.uid = "uid1"
< kind = "Status"
< metadata = {}
< status = "Success"

= A deletion of another version is a conflict
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
& rv /metadata/resourceVersion
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> DELETE /api/v1/namespaces/$ns/configmaps/a
| {"preconditions": {"resourceVersion": "1"}}
- message
< 409 Conflict
< apiVersion = "v1"
< code = 409
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< metadata = {}
< reason = "Conflict"
< status = "Failure"
> DELETE /api/v1/namespaces/$ns/configmaps/a
| {"preconditions": {"resourceVersion": "$rv"}}
< 200
< apiVersion = "v1"
< details.kind = "configmaps"
< details.name = "a"
< details.uid = "uid1"
< kind = "Status"
< metadata = {}
< status = "Success"

= An object with a finalizer waits for it
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "finalizers": ["x.io/a"]}}
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.finalizers[0] = "x.io/a"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> DELETE /api/v1/namespaces/$ns/configmaps/a
< 200
< apiVersion = "v1"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.deletionGracePeriodSeconds = 0
< metadata.deletionTimestamp = "TIME"
< metadata.finalizers[0] = "x.io/a"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"
> DELETE /api/v1/namespaces/$ns/configmaps/a
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.deletionGracePeriodSeconds = 0
< metadata.deletionTimestamp = "TIME"
< metadata.finalizers[0] = "x.io/a"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"finalizers": ["x.io/a", "x.io/b"]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.finalizers"
< details.causes[0].message = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x.io/b\"}"
< details.causes[0].reason = "FieldValueForbidden"
< details.causes[1].field = "metadata.finalizers"
< details.causes[1].message = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x.io/b\"}"
< details.causes[1].reason = "FieldValueForbidden"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x.io/b\"}"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"still": "here"}, "deletionTimestamp": null}}
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.deletionGracePeriodSeconds = 0
< metadata.deletionTimestamp = "TIME"
< metadata.finalizers[0] = "x.io/a"
< metadata.labels.still = "here"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v3"
< metadata.uid = "uid1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"finalizers": null}}
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.deletionGracePeriodSeconds = 0
< metadata.deletionTimestamp = "TIME"
< metadata.labels.still = "here"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v3"
< metadata.uid = "uid1"
> GET /api/v1/namespaces/$ns/configmaps/a
? message
< 404 NotFound
< message = "configmaps \"a\" not found"

= A workload that is being deleted has a new generation
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a", "finalizers": ["x.io/a"]}, "spec": {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
? metadata.generation
< 201
< metadata.generation = 1
> DELETE /apis/apps/v1/namespaces/$ns/deployments/a
? metadata.generation metadata.deletionGracePeriodSeconds metadata.deletionTimestamp
< 200
< metadata.deletionGracePeriodSeconds = 0
< metadata.deletionTimestamp = "TIME"
< metadata.generation = 2
> PATCH /apis/apps/v1/namespaces/$ns/deployments/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"finalizers": null}}
? metadata.generation metadata.finalizers
< 200
< metadata.generation = 2

= A collection is deleted by a selector
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "b", "labels": {"x": "y"}}}
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "b"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid2"
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "c", "labels": {"x": "n"}}}
? metadata.name
< 201
< metadata.name = "c"
> DELETE /api/v1/namespaces/$ns/secrets?labelSelector=x%3Dy
< 200
< apiVersion = "v1"
< items[0].metadata.creationTimestamp = "TIME"
< items[0].metadata.labels.x = "y"
< items[0].metadata.name = "a"
< items[0].metadata.namespace = "$ns"
< items[0].metadata.resourceVersion = "v1"
< items[0].metadata.uid = "uid1"
< items[0].type = "Opaque"
< items[1].metadata.creationTimestamp = "TIME"
< items[1].metadata.labels.x = "y"
< items[1].metadata.name = "b"
< items[1].metadata.namespace = "$ns"
< items[1].metadata.resourceVersion = "v2"
< items[1].metadata.uid = "uid2"
< items[1].type = "Opaque"
< kind = "SecretList"
< metadata.resourceVersion = "VERSION"
> GET /api/v1/namespaces/$ns/secrets?labelSelector=x
? items[0].metadata.name items[1]
< 200
< items[0].metadata.name = "c"

= A pod without a node is gone at once
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns/pods/a
? metadata.name metadata.deletionTimestamp metadata.deletionGracePeriodSeconds status.phase
< 200
< metadata.deletionGracePeriodSeconds = 0
< metadata.deletionTimestamp = "TIME"
< metadata.name = "a"
< status.phase = "Pending"
> GET /api/v1/namespaces/$ns/pods/a
? message
< 404 NotFound
< message = "pods \"a\" not found"

= A pod on a node is deleted with a grace period
! 1.20: newer servers set the generation of pods
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns/pods/a
? metadata.deletionGracePeriodSeconds metadata.deletionTimestamp metadata.generation
< 200
< metadata.deletionGracePeriodSeconds = 30
< metadata.deletionTimestamp = "TIME"
< metadata.generation = 2
<1.20 200
<1.20 metadata.deletionGracePeriodSeconds = 30
<1.20 metadata.deletionTimestamp = "TIME"
> DELETE /api/v1/namespaces/$ns/pods/a
| {"gracePeriodSeconds": 10}
? metadata.deletionGracePeriodSeconds
< 200
< metadata.deletionGracePeriodSeconds = 10
> DELETE /api/v1/namespaces/$ns/pods/a
| {"gracePeriodSeconds": 20}
? metadata.deletionGracePeriodSeconds
< 200
< metadata.deletionGracePeriodSeconds = 10
> DELETE /api/v1/namespaces/$ns/pods/a?gracePeriodSeconds=0
? metadata.deletionGracePeriodSeconds metadata.name
< 200
< metadata.deletionGracePeriodSeconds = 0
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/pods/a
? message
< 404 NotFound
< message = "pods \"a\" not found"

= A pod's own grace period is used
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"nodeName": "nowhere", "terminationGracePeriodSeconds": 7, "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns/pods/a
? metadata.deletionGracePeriodSeconds
< 200
< metadata.deletionGracePeriodSeconds = 7
> DELETE /api/v1/namespaces/$ns/pods/a
| {"gracePeriodSeconds": 0}
? metadata.deletionGracePeriodSeconds
< 200
< metadata.deletionGracePeriodSeconds = 0

= Two ways to say what happens to dependents are refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns/configmaps/a
| {"orphanDependents": true, "propagationPolicy": "Orphan"}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "propagationPolicy"
< details.causes[0].message = "Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "meta.k8s.io"
< details.kind = "DeleteOptions"
< kind = "Status"
< message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> DELETE /api/v1/namespaces/$ns/configmaps/a?propagationPolicy=Never
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "propagationPolicy"
< details.causes[0].message = "Unsupported value: \"Never\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
< details.causes[0].reason = "FieldValueNotSupported"
< details.group = "meta.k8s.io"
< details.kind = "DeleteOptions"
< kind = "Status"
< message = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Never\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> DELETE /api/v1/namespaces/$ns/configmaps/a?propagationPolicy=Background
? status
< 200
< status = "Success"

= Dependents go after their owner in the background
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "owner"}}
& uid /metadata/uid
? metadata.name
< 201
< metadata.name = "owner"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "child", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "$uid"}]}}
? metadata.ownerReferences
< 201
< metadata.ownerReferences[0].apiVersion = "v1"
< metadata.ownerReferences[0].kind = "ConfigMap"
< metadata.ownerReferences[0].name = "owner"
< metadata.ownerReferences[0].uid = "uid1"
> DELETE /api/v1/namespaces/$ns/configmaps/owner?propagationPolicy=Background
? status
< 200
< status = "Success"
> GET /api/v1/namespaces/$ns/configmaps/child
* until 404
? message
< 404 NotFound
< message = "configmaps \"child\" not found"

= Dependents go before their owner in the foreground
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "owner"}}
& uid /metadata/uid
? metadata.name
< 201
< metadata.name = "owner"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "child", "finalizers": ["x.io/a"], "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "$uid", "blockOwnerDeletion": true}]}}
? metadata.ownerReferences
< 201
< metadata.ownerReferences[0].apiVersion = "v1"
< metadata.ownerReferences[0].blockOwnerDeletion = true
< metadata.ownerReferences[0].kind = "ConfigMap"
< metadata.ownerReferences[0].name = "owner"
< metadata.ownerReferences[0].uid = "uid1"
> DELETE /api/v1/namespaces/$ns/configmaps/owner
| {"propagationPolicy": "Foreground"}
? metadata.finalizers metadata.deletionTimestamp metadata.deletionGracePeriodSeconds
< 200
< metadata.deletionGracePeriodSeconds = 0
< metadata.deletionTimestamp = "TIME"
< metadata.finalizers[0] = "foregroundDeletion"
> GET /api/v1/namespaces/$ns/configmaps/child
* until metadata.deletionTimestamp = "TIME"
? metadata.finalizers
< 200
< metadata.finalizers[0] = "x.io/a"
> GET /api/v1/namespaces/$ns/configmaps/owner
? metadata.finalizers
< 200
< metadata.finalizers[0] = "foregroundDeletion"
> PATCH /api/v1/namespaces/$ns/configmaps/child
@ Content-Type: application/merge-patch+json
| {"metadata": {"finalizers": null}}
? metadata.finalizers
< 200
> GET /api/v1/namespaces/$ns/configmaps/owner
* until 404
? message
< 404 NotFound
< message = "configmaps \"owner\" not found"

= Dependents stay when they are orphaned
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "owner"}}
& uid /metadata/uid
? metadata.name
< 201
< metadata.name = "owner"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "child", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "$uid"}]}}
? metadata.ownerReferences
< 201
< metadata.ownerReferences[0].apiVersion = "v1"
< metadata.ownerReferences[0].kind = "ConfigMap"
< metadata.ownerReferences[0].name = "owner"
< metadata.ownerReferences[0].uid = "uid1"
> DELETE /api/v1/namespaces/$ns/configmaps/owner?propagationPolicy=Orphan
? metadata.finalizers metadata.deletionTimestamp status
< 200
< metadata.deletionTimestamp = "TIME"
< metadata.finalizers[0] = "orphan"
> GET /api/v1/namespaces/$ns/configmaps/owner
* until 404
? message
< 404 NotFound
< message = "configmaps \"owner\" not found"
> GET /api/v1/namespaces/$ns/configmaps/child
? metadata.ownerReferences metadata.name
< 200
< metadata.name = "child"

= A dependent of an owner that never was is deleted
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "child", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "b17d2c5e-0000-4000-8000-000000000000"}]}}
? metadata.ownerReferences[0].name
< 201
< metadata.ownerReferences[0].name = "owner"
> GET /api/v1/namespaces/$ns/configmaps/child
* until 404
? message
< 404 NotFound
< message = "configmaps \"child\" not found"
