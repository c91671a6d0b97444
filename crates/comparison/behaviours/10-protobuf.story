# Objects in protobuf. Bodies are written as JSON and sent as protobuf, or byte by byte behind `hex:`.

= An object in protobuf is taken
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"b": "c"}}, "data": {"k": "v"}, "binaryData": {"x": "AP8="}}
< 201
< apiVersion = "v1"
< binaryData.x = "AP8="
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.labels.b = "c"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= An answer in protobuf
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/configmaps/a
@ Accept: application/vnd.kubernetes.protobuf,application/json
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
< content-type: application/vnd.kubernetes.protobuf
> GET /api/v1/namespaces/$ns/configmaps/b
@ Accept: application/vnd.kubernetes.protobuf,application/json
% content-type
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "configmaps"
< details.name = "b"
< kind = "Status"
< message = "configmaps \"b\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
< content-type: application/vnd.kubernetes.protobuf
> GET /api/v1/namespaces/$ns/configmaps?labelSelector=x
@ Accept: application/vnd.kubernetes.protobuf
% content-type
< 200
< apiVersion = "v1"
< items = null
< kind = "ConfigMapList"
< metadata.resourceVersion = "VERSION"
< content-type: application/vnd.kubernetes.protobuf
> DELETE /api/v1/namespaces/$ns/configmaps/a
@ Accept: application/vnd.kubernetes.protobuf
% content-type
< 200
< apiVersion = "v1"
< details.kind = "configmaps"
< details.name = "a"
< details.uid = "uid1"
< kind = "Status"
< metadata = {}
< status = "Success"
< content-type: application/vnd.kubernetes.protobuf

= Quality decides between JSON and protobuf
> GET /api/v1/namespaces/$ns/configmaps?labelSelector=x
@ Accept: application/json;q=0.5,application/vnd.kubernetes.protobuf;q=0.9,application/yaml;q=0.1
% content-type
< 200
< apiVersion = "v1"
< items = null
< kind = "ConfigMapList"
< metadata.resourceVersion = "VERSION"
< content-type: application/vnd.kubernetes.protobuf

= A deployment in protobuf is defaulted
! from 1.25: the fields are newer
> POST /apis/apps/v1/namespaces/$ns/deployments
@ Content-Type: application/vnd.kubernetes.protobuf
@ Accept: application/vnd.kubernetes.protobuf
| {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 0,
|  "selector": {"matchLabels": {"a": "b"}}, "strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": "10%"}},
|  "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i",
|  "resources": {"requests": {"cpu": "0.1"}}, "readinessProbe": {"httpGet": {"port": "web"}},
|  "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}], "volumes": [{"name": "v", "emptyDir": {}}]}}}}
% content-type
< 201
< apiVersion = "apps/v1"
< kind = "Deployment"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.progressDeadlineSeconds = 600
< spec.replicas = 0
< spec.revisionHistoryLimit = 10
< spec.selector.matchLabels.a = "b"
< spec.strategy.rollingUpdate.maxSurge = "10%"
< spec.strategy.rollingUpdate.maxUnavailable = 1
< spec.strategy.type = "RollingUpdate"
< spec.template.metadata.labels.a = "b"
< spec.template.spec.containers[0].env[0].name = "A"
< spec.template.spec.containers[0].env[0].valueFrom.fieldRef.apiVersion = "v1"
< spec.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath = "metadata.name"
< spec.template.spec.containers[0].image = "i"
< spec.template.spec.containers[0].imagePullPolicy = "Always"
< spec.template.spec.containers[0].name = "c"
< spec.template.spec.containers[0].readinessProbe.failureThreshold = 3
< spec.template.spec.containers[0].readinessProbe.httpGet.path = "/"
< spec.template.spec.containers[0].readinessProbe.httpGet.port = "web"
< spec.template.spec.containers[0].readinessProbe.httpGet.scheme = "HTTP"
< spec.template.spec.containers[0].readinessProbe.periodSeconds = 10
< spec.template.spec.containers[0].readinessProbe.successThreshold = 1
< spec.template.spec.containers[0].readinessProbe.timeoutSeconds = 1
< spec.template.spec.containers[0].resources.requests.cpu = "100m"
< spec.template.spec.containers[0].terminationMessagePath = "/dev/termination-log"
< spec.template.spec.containers[0].terminationMessagePolicy = "File"
< spec.template.spec.dnsPolicy = "ClusterFirst"
< spec.template.spec.restartPolicy = "Always"
< spec.template.spec.schedulerName = "default-scheduler"
< spec.template.spec.securityContext = {}
< spec.template.spec.terminationGracePeriodSeconds = 30
< spec.template.spec.volumes[0].emptyDir = {}
< spec.template.spec.volumes[0].name = "v"
< status = {}
< content-type: application/vnd.kubernetes.protobuf

= Options of a delete in protobuf
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/vnd.kubernetes.protobuf
| {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "other"}}
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
@ Content-Type: application/vnd.kubernetes.protobuf
| {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"], "propagationPolicy": "Background"}
< 200
< apiVersion = "v1"
< details.kind = "configmaps"
< details.name = "a"
< details.uid = "uid1"
< kind = "Status"
< metadata = {}
< status = "Success"

= A watch in protobuf
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}, "stringData": {"k": "v"}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets?watch=true&timeoutSeconds=1&labelSelector=x%3Dy
@ Accept: application/vnd.kubernetes.protobuf;stream=watch
% content-type
< 200
< event[0].object.apiVersion = "v1"
< event[0].object.data.k = "dg=="
< event[0].object.kind = "Secret"
< event[0].object.metadata.creationTimestamp = "TIME"
< event[0].object.metadata.labels.x = "y"
< event[0].object.metadata.name = "a"
< event[0].object.metadata.namespace = "$ns"
< event[0].object.metadata.resourceVersion = "v1"
< event[0].object.metadata.uid = "uid1"
< event[0].object.type = "Opaque"
< event[0].type = "ADDED"
< content-type: application/vnd.kubernetes.protobuf;stream=watch

= A watch is JSON or protobuf
> GET /api/v1/namespaces/$ns/secrets?watch=true&timeoutSeconds=1
@ Accept: application/yaml
< 406
< apiVersion = "v1"
< code = 406
< kind = "Status"
< message = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
< metadata = {}
< reason = "NotAcceptable"
< status = "Failure"

= A table cannot be protobuf
> GET /api/v1/namespaces/$ns/secrets
@ Accept: application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1
< 406 NotAcceptable
< apiVersion = "v1"
< code = 406
< kind = "Status"
< message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
< metadata = {}
< reason = "NotAcceptable"
< status = "Failure"

= Metadata alone in protobuf
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets?labelSelector=x%3Dy
@ Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1
< 200
< apiVersion = "meta.k8s.io/v1"
< items[0].metadata.creationTimestamp = "TIME"
< items[0].metadata.labels.x = "y"
< items[0].metadata.name = "a"
< items[0].metadata.namespace = "$ns"
< items[0].metadata.resourceVersion = "v1"
< items[0].metadata.uid = "uid1"
< kind = "PartialObjectMetadataList"
< metadata.resourceVersion = "VERSION"

= Bytes that are no protobuf are refused
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| hex:
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| hex: 6b387300
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| hex: 7b7d
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| hex: 6b387300 0a0f 0a027631 1209436f6e6669674d6170 1202 0a05
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| hex: 6b387300 0a0f 0a027631 1209436f6e6669674d6170 1202 0801
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "Deployment in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Deployment) to (core.ConfigMap): unknown conversion"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= An object in protobuf is what its path says
> POST /api/v1/namespaces/$ns/configmaps
@ Content-Type: application/vnd.kubernetes.protobuf
| hex: 6b387300 1205 0a03 0a01 61
< 201
< apiVersion = "v1"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= A patch cannot be protobuf
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/vnd.kubernetes.protobuf
| {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
< 415 UnsupportedMediaType
< apiVersion = "v1"
< code = 415
< details = {}
< kind = "Status"
< message = "415: Unsupported Media Type"
< metadata = {}
< reason = "UnsupportedMediaType"
< status = "Failure"

= A custom resource has no protobuf
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
@ Content-Type: application/vnd.kubernetes.protobuf
@ Accept: application/vnd.kubernetes.protobuf
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1.5}}, "size": {"type": "integer", "default": 3, "enum": [1, 3]}}}}}]}}
- status metadata.resourceVersion
< 201
< apiVersion = "apiextensions.k8s.io/v1"
< kind = "CustomResourceDefinition"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "things.$ns.example.com"
< metadata.uid = "uid1"
< spec.conversion.strategy = "None"
< spec.group = "$ns.example.com"
< spec.names.kind = "Thing"
< spec.names.listKind = "ThingList"
< spec.names.plural = "things"
< spec.names.singular = "thing"
< spec.scope = "Namespaced"
< spec.versions[0].name = "v1"
< spec.versions[0].schema.openAPIV3Schema.properties.size.default = 3
< spec.versions[0].schema.openAPIV3Schema.properties.size.enum[0] = 1
< spec.versions[0].schema.openAPIV3Schema.properties.size.enum[1] = 3
< spec.versions[0].schema.openAPIV3Schema.properties.size.type = "integer"
< spec.versions[0].schema.openAPIV3Schema.properties.spec.additionalProperties.minimum = 1.5
< spec.versions[0].schema.openAPIV3Schema.properties.spec.additionalProperties.type = "integer"
< spec.versions[0].schema.openAPIV3Schema.properties.spec.type = "object"
< spec.versions[0].schema.openAPIV3Schema.type = "object"
< spec.versions[0].served = true
< spec.versions[0].storage = true
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
- metadata
# Without the parameter real servers break off.
< 200
< apiVersion = "$ns.example.com/v1"
< items = []
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things?fieldValidation=Ignore
@ Content-Type: application/vnd.kubernetes.protobuf
| hex: 6b387300 1200
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "Thing in version \"v1\" cannot be handled as a Thing: Object 'Kind' is missing in 'object has no kind field '"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
@ Accept: application/vnd.kubernetes.protobuf,application/json
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
% content-type
< 201
< apiVersion = "$ns.example.com/v1"
< kind = "Thing"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid2"
< size = 3
< content-type: application/json
> GET /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Accept: application/vnd.kubernetes.protobuf
% content-type
< 406 NotAcceptable
< apiVersion = "v1"
< code = 406
< kind = "Status"
< message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
< metadata = {}
< reason = "NotAcceptable"
< status = "Failure"
< content-type: application/vnd.kubernetes.protobuf
> GET /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1
% content-type
< 200
< apiVersion = "meta.k8s.io/v1"
< kind = "PartialObjectMetadata"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid2"
< content-type: application/vnd.kubernetes.protobuf
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? kind
< 200
< kind = "CustomResourceDefinition"
