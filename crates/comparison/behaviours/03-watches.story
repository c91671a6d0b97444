# Watches.

= A watch tells what happened since a version
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
& rv /metadata/resourceVersion
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
> PATCH /api/v1/namespaces/$ns/secrets/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"z": "1"}}}
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.labels.z = "1"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v3"
< metadata.uid = "uid1"
> DELETE /api/v1/namespaces/$ns/secrets/a
? status
< 200
< status = "Success"
> GET /api/v1/namespaces/$ns/secrets?watch=1&resourceVersion=$rv&timeoutSeconds=2&labelSelector=x%3Dy
< 200
< event[0].object.apiVersion = "v1"
< event[0].object.kind = "Secret"
< event[0].object.metadata.creationTimestamp = "TIME"
< event[0].object.metadata.labels.x = "y"
< event[0].object.metadata.name = "b"
< event[0].object.metadata.namespace = "$ns"
< event[0].object.metadata.resourceVersion = "v2"
< event[0].object.metadata.uid = "uid2"
< event[0].object.type = "Opaque"
< event[0].type = "ADDED"
< event[1].object.apiVersion = "v1"
< event[1].object.kind = "Secret"
< event[1].object.metadata.creationTimestamp = "TIME"
< event[1].object.metadata.labels.x = "y"
< event[1].object.metadata.labels.z = "1"
< event[1].object.metadata.name = "a"
< event[1].object.metadata.namespace = "$ns"
< event[1].object.metadata.resourceVersion = "v3"
< event[1].object.metadata.uid = "uid1"
< event[1].object.type = "Opaque"
< event[1].type = "MODIFIED"
< event[2].object.apiVersion = "v1"
< event[2].object.kind = "Secret"
< event[2].object.metadata.creationTimestamp = "TIME"
< event[2].object.metadata.labels.x = "y"
< event[2].object.metadata.labels.z = "1"
< event[2].object.metadata.name = "a"
< event[2].object.metadata.namespace = "$ns"
< event[2].object.metadata.resourceVersion = "v4"
< event[2].object.metadata.uid = "uid1"
< event[2].object.type = "Opaque"
< event[2].type = "DELETED"

= A watch without a version begins with what is there
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
> GET /api/v1/namespaces/$ns/secrets?watch=true&timeoutSeconds=2&labelSelector=x%3Dy
? event[0].type event[0].object.metadata.name event[1].type
< 200
< event[0].object.metadata.name = "a"
< event[0].type = "ADDED"

= An object that leaves the selection is deleted for the watcher
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
& rv /metadata/resourceVersion
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> PATCH /api/v1/namespaces/$ns/secrets/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"x": "n"}}}
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "n"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"
> PATCH /api/v1/namespaces/$ns/secrets/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"more": "n"}}}
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.labels.more = "n"
< metadata.labels.x = "n"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v3"
< metadata.uid = "uid1"
> PATCH /api/v1/namespaces/$ns/secrets/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"x": "y"}}}
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.labels.more = "n"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v4"
< metadata.uid = "uid1"
> GET /api/v1/namespaces/$ns/secrets?watch=1&resourceVersion=$rv&timeoutSeconds=2&labelSelector=x%3Dy
< 200
< event[0].object.apiVersion = "v1"
< event[0].object.kind = "Secret"
< event[0].object.metadata.creationTimestamp = "TIME"
< event[0].object.metadata.labels.x = "y"
< event[0].object.metadata.name = "a"
< event[0].object.metadata.namespace = "$ns"
< event[0].object.metadata.resourceVersion = "v2"
< event[0].object.metadata.uid = "uid1"
< event[0].object.type = "Opaque"
< event[0].type = "DELETED"
< event[1].object.apiVersion = "v1"
< event[1].object.kind = "Secret"
< event[1].object.metadata.creationTimestamp = "TIME"
< event[1].object.metadata.labels.more = "n"
< event[1].object.metadata.labels.x = "y"
< event[1].object.metadata.name = "a"
< event[1].object.metadata.namespace = "$ns"
< event[1].object.metadata.resourceVersion = "v4"
< event[1].object.metadata.uid = "uid1"
< event[1].object.type = "Opaque"
< event[1].type = "ADDED"

= A pod that gets a node leaves a selection of waiting pods
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}}
& rv /metadata/resourceVersion
? metadata.name
< 201
< metadata.name = "a"
> POST /api/v1/namespaces/$ns/pods/a/binding
| {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "nowhere"}}
< 201
< apiVersion = "v1"
< code = 201
< kind = "Status"
< metadata = {}
< status = "Success"
> GET /api/v1/namespaces/$ns/pods?watch=1&resourceVersion=$rv&timeoutSeconds=2&fieldSelector=spec.nodeName%3D
? event[0].type event[0].object.metadata.name event[0].object.spec.nodeName event[1].type
< 200
< event[0].object.metadata.name = "a"
< event[0].type = "DELETED"

= A watch of one object by its name
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a"}}
& rv /metadata/resourceVersion
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "b"}}
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.name = "b"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid2"
> DELETE /api/v1/namespaces/$ns/secrets/a
? status
< 200
< status = "Success"
> GET /api/v1/namespaces/$ns/secrets?watch=1&resourceVersion=$rv&timeoutSeconds=2&fieldSelector=metadata.name%3Da
? event[0].type event[0].object.metadata event[1].type
< 200
< event[0].object.metadata.creationTimestamp = "TIME"
< event[0].object.metadata.name = "a"
< event[0].object.metadata.namespace = "$ns"
< event[0].object.metadata.resourceVersion = "v3"
< event[0].object.metadata.uid = "uid1"
< event[0].type = "DELETED"

= A watch that is soon over gets no bookmark
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
& rv /metadata/resourceVersion
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/podtemplates?watch=1&resourceVersion=$rv&timeoutSeconds=1&allowWatchBookmarks=true
- event[0].object.template
< 200

= A watch of a version that is no number is refused
> GET /api/v1/namespaces/$ns/configmaps?watch=1&resourceVersion=abc&timeoutSeconds=1
< 500
< apiVersion = "v1"
< code = 500
< kind = "Status"
< message = "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax"
< metadata = {}
< status = "Failure"

= A watch with a bad selector is refused
> GET /api/v1/namespaces/$ns/configmaps?watch=1&labelSelector=a%20in%20x&timeoutSeconds=1
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "unable to parse requirement: found 'x' expected: '('"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A watch ends after its time
> GET /api/v1/namespaces/$ns/podtemplates?watch=1&resourceVersion=0&timeoutSeconds=1
% content-type
< 200
< content-type: application/json

= A watch of tables has the columns once
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
& rv /metadata/resourceVersion
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/secrets/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"z": "1"}}}
? metadata.name
< 200
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/secrets/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"z": "2"}}}
? metadata.name
< 200
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets?watch=1&resourceVersion=$rv&timeoutSeconds=2&labelSelector=x%3Dy
@ Accept: application/json;as=Table;v=v1;g=meta.k8s.io
- event[0].object.rows[0].cells[3] event[1].object.rows[0].cells[3] *description
< 200
< event[0].object.apiVersion = "meta.k8s.io/v1"
< event[0].object.columnDefinitions[0].format = "name"
< event[0].object.columnDefinitions[0].name = "Name"
< event[0].object.columnDefinitions[0].priority = 0
< event[0].object.columnDefinitions[0].type = "string"
< event[0].object.columnDefinitions[1].format = ""
< event[0].object.columnDefinitions[1].name = "Type"
< event[0].object.columnDefinitions[1].priority = 0
< event[0].object.columnDefinitions[1].type = "string"
< event[0].object.columnDefinitions[2].format = ""
< event[0].object.columnDefinitions[2].name = "Data"
< event[0].object.columnDefinitions[2].priority = 0
< event[0].object.columnDefinitions[2].type = "string"
< event[0].object.columnDefinitions[3].format = ""
< event[0].object.columnDefinitions[3].name = "Age"
< event[0].object.columnDefinitions[3].priority = 0
< event[0].object.columnDefinitions[3].type = "string"
< event[0].object.kind = "Table"
< event[0].object.metadata.resourceVersion = "v2"
< event[0].object.rows[0].cells[0] = "a"
< event[0].object.rows[0].cells[1] = "Opaque"
< event[0].object.rows[0].cells[2] = 0
< event[0].object.rows[0].object.apiVersion = "meta.k8s.io/v1"
< event[0].object.rows[0].object.kind = "PartialObjectMetadata"
< event[0].object.rows[0].object.metadata.creationTimestamp = "TIME"
< event[0].object.rows[0].object.metadata.labels.x = "y"
< event[0].object.rows[0].object.metadata.labels.z = "1"
< event[0].object.rows[0].object.metadata.name = "a"
< event[0].object.rows[0].object.metadata.namespace = "$ns"
< event[0].object.rows[0].object.metadata.resourceVersion = "v2"
< event[0].object.rows[0].object.metadata.uid = "uid1"
< event[0].type = "MODIFIED"
< event[1].object.apiVersion = "meta.k8s.io/v1"
< event[1].object.columnDefinitions = null
< event[1].object.kind = "Table"
< event[1].object.metadata.resourceVersion = "v3"
< event[1].object.rows[0].cells[0] = "a"
< event[1].object.rows[0].cells[1] = "Opaque"
< event[1].object.rows[0].cells[2] = 0
< event[1].object.rows[0].object.apiVersion = "meta.k8s.io/v1"
< event[1].object.rows[0].object.kind = "PartialObjectMetadata"
< event[1].object.rows[0].object.metadata.creationTimestamp = "TIME"
< event[1].object.rows[0].object.metadata.labels.x = "y"
< event[1].object.rows[0].object.metadata.labels.z = "2"
< event[1].object.rows[0].object.metadata.name = "a"
< event[1].object.rows[0].object.metadata.namespace = "$ns"
< event[1].object.rows[0].object.metadata.resourceVersion = "v3"
< event[1].object.rows[0].object.metadata.uid = "uid1"
< event[1].type = "MODIFIED"
