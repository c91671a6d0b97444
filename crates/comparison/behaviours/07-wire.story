# What goes over the wire: paths, methods, bodies and forms of answers.

= Unknown paths are not found
! embedded: an unknown group is rejected with a Status and not with a line of text; clients print the same for both
> GET /apis/nothing.example.com
< 404
< text: 404 page not found
<embedded 404 NotFound
<embedded apiVersion = "v1"
<embedded code = 404
<embedded details = {}
<embedded kind = "Status"
<embedded message = "the server could not find the requested resource"
<embedded metadata = {}
<embedded reason = "NotFound"
<embedded status = "Failure"
> GET /apis/apps/v1/nothings
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details = {}
< kind = "Status"
< message = "the server could not find the requested resource"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> GET /api/v1/namespaces/$ns/nothings/a
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details = {}
< kind = "Status"
< message = "the server could not find the requested resource"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> GET /apis/apps/v1/namespaces/$ns/deployments/a/nothing
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details = {}
< kind = "Status"
< message = "the server could not find the requested resource"
< metadata = {}
< reason = "NotFound"
< status = "Failure"

= Wrong methods are refused
> PUT /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
< 405 MethodNotAllowed
< apiVersion = "v1"
< code = 405
< details = {}
< kind = "Status"
< message = "the server does not allow this method on the requested resource"
< metadata = {}
< reason = "MethodNotAllowed"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a"}}
< 405 MethodNotAllowed
< apiVersion = "v1"
< code = 405
< details = {}
< kind = "Status"
< message = "the server does not allow this method on the requested resource"
< metadata = {}
< reason = "MethodNotAllowed"
< status = "Failure"
> DELETE /api/v1/namespaces
< 405 MethodNotAllowed
< apiVersion = "v1"
< code = 405
< details = {}
< kind = "Status"
< message = "the server does not allow this method on the requested resource"
< metadata = {}
< reason = "MethodNotAllowed"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/merge-patch+json
| {}
< 405 MethodNotAllowed
< apiVersion = "v1"
< code = 405
< details = {}
< kind = "Status"
< message = "the server does not allow this method on the requested resource"
< metadata = {}
< reason = "MethodNotAllowed"
< status = "Failure"

= A body that is no JSON is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata":
- message
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
| 17
- message
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
- message
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A body of an unknown form is refused
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: text/plain
| {"metadata": {"name": "a"}}
< 415 UnsupportedMediaType
< apiVersion = "v1"
< code = 415
< kind = "Status"
< message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
< metadata = {}
< reason = "UnsupportedMediaType"
< status = "Failure"

= A body in YAML is taken
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/yaml
| apiVersion: v1
| kind: ConfigMap
| metadata:
|   name: a
| data:
|   k: |
|     two
|     lines
|   m: "1"
< 201
< apiVersion = "v1"
< data.k = "two\nlines\n"
< data.m = "1"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= Old boolean words of YAML are booleans
! embedded: YAML is parsed by its newer rules, in which yes, no, on, off, y and n are strings
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/yaml
| metadata: {name: a}
| data:
|   n: "1"
< 201
< apiVersion = "v1"
< data.false = "1"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
<embedded 201
<embedded apiVersion = "v1"
<embedded data.n = "1"
<embedded kind = "ConfigMap"
<embedded metadata.creationTimestamp = "TIME"
<embedded metadata.name = "a"
<embedded metadata.namespace = "$ns"
<embedded metadata.resourceVersion = "v1"
<embedded metadata.uid = "uid1"

= An answer in YAML
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/configmaps/a
@ Accept: application/yaml
% content-type
< 200
< apiVersion = "v1"
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< content-type: application/yaml

= An unknown media type is rejected
! 1.20: newer servers list the media types that they support
> GET /api/v1/namespaces/$ns/configmaps
@ Accept: application/x-nothing
< 406 NotAcceptable
< apiVersion = "v1"
< code = 406
< details = {}
< kind = "Status"
< message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
< metadata = {}
< reason = "NotAcceptable"
< status = "Failure"
<1.20 406 NotAcceptable
<1.20 apiVersion = "v1"
<1.20 code = 406
<1.20 details = {}
<1.20 kind = "Status"
<1.20 message = "406: Not Acceptable"
<1.20 metadata = {}
<1.20 reason = "NotAcceptable"
<1.20 status = "Failure"
> GET /api/v1/namespaces/$ns/configmaps
@ Accept: application/x-nothing, */*
? kind
< 200
< kind = "ConfigMapList"

= The version says what the server is
> GET /version
? major
< 200
< major = "1"

= Health is a word
> GET /healthz
% content-type
< 200
< text: ok
< content-type: text/plain; charset=utf-8
> GET /livez
< 200
< text: ok
> GET /readyz
< 200
< text: ok

= The core versions are listed
> GET /api
- serverAddressByClientCIDRs
< 200
< kind = "APIVersions"
< versions[0] = "v1"

= A group is listed with its versions
> GET /apis/apps
< 200
< apiVersion = "v1"
< kind = "APIGroup"
< name = "apps"
< preferredVersion.groupVersion = "apps/v1"
< preferredVersion.version = "v1"
< versions[0].groupVersion = "apps/v1"
< versions[0].version = "v1"
> GET /apis/apps/v1
? kind groupVersion
< 200
< groupVersion = "apps/v1"
< kind = "APIResourceList"

= Discovery lists the verbs of resources
! 1.20: singular names are newer
> GET /api/v1
? kind groupVersion resources[0]
< 200
< groupVersion = "v1"
< kind = "APIResourceList"
< resources[0].kind = "Binding"
< resources[0].name = "bindings"
< resources[0].namespaced = true
< resources[0].singularName = "binding"
< resources[0].verbs[0] = "create"
<1.20 200
<1.20 groupVersion = "v1"
<1.20 kind = "APIResourceList"
<1.20 resources[0].kind = "Binding"
<1.20 resources[0].name = "bindings"
<1.20 resources[0].namespaced = true
<1.20 resources[0].singularName = ""
<1.20 resources[0].verbs[0] = "create"

= Aggregated discovery is returned on request
! from 1.27: old servers have no aggregated discovery
! embedded: there is no API aggregation, so there is no group to register API servers
> GET /apis
@ Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json
? kind apiVersion items[0].metadata items[0].versions[0].version items[0].versions[0].freshness
% content-type
< 200
< apiVersion = "apidiscovery.k8s.io/v2"
< items[0].metadata.name = "apiregistration.k8s.io"
< items[0].versions[0].freshness = "Current"
< items[0].versions[0].version = "v1"
< kind = "APIGroupDiscoveryList"
< content-type: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList
<embedded 200
<embedded apiVersion = "apidiscovery.k8s.io/v2"
<embedded items[0].metadata.name = "apps"
<embedded items[0].versions[0].freshness = "Current"
<embedded items[0].versions[0].version = "v1"
<embedded kind = "APIGroupDiscoveryList"
<embedded content-type: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList

= A client of aggregated discovery gets what there is
> GET /api
@ Accept: application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json
? kind versions
< 200
< kind = "APIVersions"
< versions[0] = "v1"

= A table of config maps
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/configmaps/a
@ Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json
- rows[0].cells[2] *description
< 200
< apiVersion = "meta.k8s.io/v1"
< columnDefinitions[0].format = "name"
< columnDefinitions[0].name = "Name"
< columnDefinitions[0].priority = 0
< columnDefinitions[0].type = "string"
< columnDefinitions[1].format = ""
< columnDefinitions[1].name = "Data"
< columnDefinitions[1].priority = 0
< columnDefinitions[1].type = "string"
< columnDefinitions[2].format = ""
< columnDefinitions[2].name = "Age"
< columnDefinitions[2].priority = 0
< columnDefinitions[2].type = "string"
< kind = "Table"
< metadata.resourceVersion = "VERSION"
< rows[0].cells[0] = "a"
< rows[0].cells[1] = 1
< rows[0].object.apiVersion = "meta.k8s.io/v1"
< rows[0].object.kind = "PartialObjectMetadata"
< rows[0].object.metadata.creationTimestamp = "TIME"
< rows[0].object.metadata.name = "a"
< rows[0].object.metadata.namespace = "$ns"
< rows[0].object.metadata.resourceVersion = "v1"
< rows[0].object.metadata.uid = "uid1"

= A table of pods
! 1.20: restarts are a string in newer servers
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/pods
@ Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json
- rows[0].cells[4] rows[0].object.metadata columnDefinitions
< 200
< apiVersion = "meta.k8s.io/v1"
< kind = "Table"
< metadata.resourceVersion = "VERSION"
< rows[0].cells[0] = "a"
< rows[0].cells[1] = "0/2"
< rows[0].cells[2] = "Pending"
< rows[0].cells[3] = "0"
< rows[0].cells[5] = "<none>"
< rows[0].cells[6] = "<none>"
< rows[0].cells[7] = "<none>"
< rows[0].cells[8] = "<none>"
< rows[0].object.apiVersion = "meta.k8s.io/v1"
< rows[0].object.kind = "PartialObjectMetadata"
<1.20 200
<1.20 apiVersion = "meta.k8s.io/v1"
<1.20 kind = "Table"
<1.20 metadata.resourceVersion = "VERSION"
<1.20 rows[0].cells[0] = "a"
<1.20 rows[0].cells[1] = "0/2"
<1.20 rows[0].cells[2] = "Pending"
<1.20 rows[0].cells[3] = 0
<1.20 rows[0].cells[5] = "<none>"
<1.20 rows[0].cells[6] = "<none>"
<1.20 rows[0].cells[7] = "<none>"
<1.20 rows[0].cells[8] = "<none>"
<1.20 rows[0].object.apiVersion = "meta.k8s.io/v1"
<1.20 rows[0].object.kind = "PartialObjectMetadata"
> GET /api/v1/namespaces/$ns/pods?includeObject=None
@ Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json
- rows[0].cells[4] columnDefinitions
< 200
< apiVersion = "meta.k8s.io/v1"
< kind = "Table"
< metadata.resourceVersion = "VERSION"
< rows[0].cells[0] = "a"
< rows[0].cells[1] = "0/2"
< rows[0].cells[2] = "Pending"
< rows[0].cells[3] = "0"
< rows[0].cells[5] = "<none>"
< rows[0].cells[6] = "<none>"
< rows[0].cells[7] = "<none>"
< rows[0].cells[8] = "<none>"
< rows[0].object = null
<1.20 200
<1.20 apiVersion = "meta.k8s.io/v1"
<1.20 kind = "Table"
<1.20 metadata.resourceVersion = "VERSION"
<1.20 rows[0].cells[0] = "a"
<1.20 rows[0].cells[1] = "0/2"
<1.20 rows[0].cells[2] = "Pending"
<1.20 rows[0].cells[3] = 0
<1.20 rows[0].cells[5] = "<none>"
<1.20 rows[0].cells[6] = "<none>"
<1.20 rows[0].cells[7] = "<none>"
<1.20 rows[0].cells[8] = "<none>"
<1.20 rows[0].object = null

= A table of deployments
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
? metadata.name
< 201
< metadata.name = "a"
> GET /apis/apps/v1/namespaces/$ns/deployments?includeObject=None
@ Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json
- rows[0].cells[4] *description
< 200
< apiVersion = "meta.k8s.io/v1"
< columnDefinitions[0].format = "name"
< columnDefinitions[0].name = "Name"
< columnDefinitions[0].priority = 0
< columnDefinitions[0].type = "string"
< columnDefinitions[1].format = ""
< columnDefinitions[1].name = "Ready"
< columnDefinitions[1].priority = 0
< columnDefinitions[1].type = "string"
< columnDefinitions[2].format = ""
< columnDefinitions[2].name = "Up-to-date"
< columnDefinitions[2].priority = 0
< columnDefinitions[2].type = "string"
< columnDefinitions[3].format = ""
< columnDefinitions[3].name = "Available"
< columnDefinitions[3].priority = 0
< columnDefinitions[3].type = "string"
< columnDefinitions[4].format = ""
< columnDefinitions[4].name = "Age"
< columnDefinitions[4].priority = 0
< columnDefinitions[4].type = "string"
< columnDefinitions[5].format = ""
< columnDefinitions[5].name = "Containers"
< columnDefinitions[5].priority = 1
< columnDefinitions[5].type = "string"
< columnDefinitions[6].format = ""
< columnDefinitions[6].name = "Images"
< columnDefinitions[6].priority = 1
< columnDefinitions[6].type = "string"
< columnDefinitions[7].format = ""
< columnDefinitions[7].name = "Selector"
< columnDefinitions[7].priority = 1
< columnDefinitions[7].type = "string"
< kind = "Table"
< metadata.resourceVersion = "VERSION"
< rows[0].cells[0] = "a"
< rows[0].cells[1] = "0/0"
< rows[0].cells[2] = 0
< rows[0].cells[3] = 0
< rows[0].cells[5] = "c"
< rows[0].cells[6] = "i"
< rows[0].cells[7] = "x=y"
< rows[0].object = null

= Columns of tables are described
! 1.20: a link in the text has changed
! embedded: columns of built-in kinds have no description; clients do not show it
> GET /api/v1/namespaces/$ns/podtemplates
@ Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json
< 200
< apiVersion = "meta.k8s.io/v1"
< columnDefinitions[0].description = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
< columnDefinitions[0].format = "name"
< columnDefinitions[0].name = "Name"
< columnDefinitions[0].priority = 0
< columnDefinitions[0].type = "string"
< columnDefinitions[1].description = "Names of each container in the template."
< columnDefinitions[1].format = ""
< columnDefinitions[1].name = "Containers"
< columnDefinitions[1].priority = 0
< columnDefinitions[1].type = "string"
< columnDefinitions[2].description = "Images referenced by each container in the template."
< columnDefinitions[2].format = ""
< columnDefinitions[2].name = "Images"
< columnDefinitions[2].priority = 0
< columnDefinitions[2].type = "string"
< columnDefinitions[3].description = "The labels for the pod template."
< columnDefinitions[3].format = ""
< columnDefinitions[3].name = "Pod Labels"
< columnDefinitions[3].priority = 0
< columnDefinitions[3].type = "string"
< kind = "Table"
< metadata.resourceVersion = "VERSION"
< rows = []
<1.20 200
<1.20 apiVersion = "meta.k8s.io/v1"
<1.20 columnDefinitions[0].description = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: http://kubernetes.io/docs/user-guide/identifiers#names"
<1.20 columnDefinitions[0].format = "name"
<1.20 columnDefinitions[0].name = "Name"
<1.20 columnDefinitions[0].priority = 0
<1.20 columnDefinitions[0].type = "string"
<1.20 columnDefinitions[1].description = "Names of each container in the template."
<1.20 columnDefinitions[1].format = ""
<1.20 columnDefinitions[1].name = "Containers"
<1.20 columnDefinitions[1].priority = 0
<1.20 columnDefinitions[1].type = "string"
<1.20 columnDefinitions[2].description = "Images referenced by each container in the template."
<1.20 columnDefinitions[2].format = ""
<1.20 columnDefinitions[2].name = "Images"
<1.20 columnDefinitions[2].priority = 0
<1.20 columnDefinitions[2].type = "string"
<1.20 columnDefinitions[3].description = "The labels for the pod template."
<1.20 columnDefinitions[3].format = ""
<1.20 columnDefinitions[3].name = "Pod Labels"
<1.20 columnDefinitions[3].priority = 0
<1.20 columnDefinitions[3].type = "string"
<1.20 kind = "Table"
<1.20 metadata.resourceVersion = "VERSION"
<1.20 rows = []
<embedded 200
<embedded apiVersion = "meta.k8s.io/v1"
<embedded columnDefinitions[0].description = "Name of the object, unique within its namespace."
<embedded columnDefinitions[0].format = "name"
<embedded columnDefinitions[0].name = "Name"
<embedded columnDefinitions[0].priority = 0
<embedded columnDefinitions[0].type = "string"
<embedded columnDefinitions[1].description = ""
<embedded columnDefinitions[1].format = ""
<embedded columnDefinitions[1].name = "Containers"
<embedded columnDefinitions[1].priority = 0
<embedded columnDefinitions[1].type = "string"
<embedded columnDefinitions[2].description = ""
<embedded columnDefinitions[2].format = ""
<embedded columnDefinitions[2].name = "Images"
<embedded columnDefinitions[2].priority = 0
<embedded columnDefinitions[2].type = "string"
<embedded columnDefinitions[3].description = ""
<embedded columnDefinitions[3].format = ""
<embedded columnDefinitions[3].name = "Pod Labels"
<embedded columnDefinitions[3].priority = 0
<embedded columnDefinitions[3].type = "string"
<embedded kind = "Table"
<embedded metadata.resourceVersion = "VERSION"
<embedded rows = []

= Only the metadata, for those who ask
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "dg=="}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets/a
@ Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1
< 200
< apiVersion = "meta.k8s.io/v1"
< kind = "PartialObjectMetadata"
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> GET /api/v1/namespaces/$ns/secrets?labelSelector=x%3Dy
@ Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1
< 200
< apiVersion = "meta.k8s.io/v1"
< items[0].apiVersion = "meta.k8s.io/v1"
< items[0].kind = "PartialObjectMetadata"
< items[0].metadata.creationTimestamp = "TIME"
< items[0].metadata.labels.x = "y"
< items[0].metadata.name = "a"
< items[0].metadata.namespace = "$ns"
< items[0].metadata.resourceVersion = "v1"
< items[0].metadata.uid = "uid1"
< kind = "PartialObjectMetadataList"
< metadata.resourceVersion = "VERSION"

= An unknown form of one object is refused
> GET /api/v1/namespaces/$ns/configmaps
@ Accept: application/json;as=Picture;g=meta.k8s.io;v=v1
< 406 NotAcceptable
< apiVersion = "v1"
< code = 406
< kind = "Status"
< message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
< metadata = {}
< reason = "NotAcceptable"
< status = "Failure"

= Server-side apply needs a manager
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/apply-patch+yaml
| {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "fieldManager"
< details.causes[0].message = "Required value: is required for apply patch"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "meta.k8s.io"
< details.kind = "PatchOptions"
< kind = "Status"
< message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= Options of a write are checked
> POST /api/v1/namespaces/$ns/configmaps?fieldManager=a%07b
| {"metadata": {"name": "a"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "fieldManager"
< details.causes[0].message = "Invalid value: \"a\\ab\": invalid character U+0007 (at position 1)"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "meta.k8s.io"
< details.kind = "CreateOptions"
< kind = "Status"
< message = "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\ab\": invalid character U+0007 (at position 1)"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a?force=true
@ Content-Type: application/merge-patch+json
| {}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "force"
< details.causes[0].message = "Forbidden: may not be specified for non-apply patch"
< details.causes[0].reason = "FieldValueForbidden"
< details.group = "meta.k8s.io"
< details.kind = "PatchOptions"
< kind = "Status"
< message = "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
