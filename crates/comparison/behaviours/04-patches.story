# Patches of each kind.

= A merge patch sets and removes
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "labels": {"x": "y", "z": "1"}}, "data": {"k": "v", "l": "w"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"x": null}}, "data": {"l": null, "m": "new"}}
< 200
< apiVersion = "v1"
< data.k = "v"
< data.m = "new"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.labels.z = "1"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"

= A JSON patch adds, replaces and removes
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "test", "path": "/data/k", "value": "v"}, {"op": "replace", "path": "/data/k", "value": "n"}, {"op": "remove", "path": "/data/l"}, {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}, {"op": "copy", "from": "/data/k", "path": "/data/c"}, {"op": "move", "from": "/data/c", "path": "/data/d"}]
< 200
< apiVersion = "v1"
< data.d = "n"
< data.k = "n"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"

= A JSON patch whose test fails is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "test", "path": "/data/k", "value": "other"}]
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details = {}
< kind = "Status"
< message = "the server rejected our request due to an error in our request"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "test", "path": "/data/missing", "value": "other"}]
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details = {}
< kind = "Status"
< message = "the server rejected our request due to an error in our request"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A JSON patch of what is not there is refused, unless it replaces a field
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "remove", "path": "/data/missing"}]
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details = {}
< kind = "Status"
< message = "the server rejected our request due to an error in our request"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "replace", "path": "/data/missing", "value": "x"}]
< 200
< apiVersion = "v1"
< data.k = "v"
< data.missing = "x"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "add", "path": "/nowhere/at/all", "value": "x"}]
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details = {}
< kind = "Status"
< message = "the server rejected our request due to an error in our request"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "jump", "path": "/data/k"}]
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details = {}
< kind = "Status"
< message = "the server rejected our request due to an error in our request"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A malformed patch is rejected
! 1.20: newer servers validate the patch before they apply it
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| {"op": "remove"}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
<1.20 400 BadRequest
<1.20 apiVersion = "v1"
<1.20 code = 400
<1.20 kind = "Status"
<1.20 message = "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
<1.20 metadata = {}
<1.20 reason = "BadRequest"
<1.20 status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| [1]
- *message
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "patch"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 kind = "Status"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data":
- *message
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
<1.20 500
<1.20 apiVersion = "v1"
<1.20 code = 500
<1.20 kind = "Status"
<1.20 metadata = {}
<1.20 status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/strategic-merge-patch+json
| @
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "invalid character '@' looking for beginning of value"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A patch needs a content type of patches
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json
| {"data": {"k": "v"}}
< 415 UnsupportedMediaType
< apiVersion = "v1"
< code = 415
< details = {}
< kind = "Status"
< message = "415: Unsupported Media Type"
< metadata = {}
< reason = "UnsupportedMediaType"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: text/plain
| {"data": {"k": "v"}}
< 415 UnsupportedMediaType
< apiVersion = "v1"
< code = 415
< details = {}
< kind = "Status"
< message = "415: Unsupported Media Type"
< metadata = {}
< reason = "UnsupportedMediaType"
< status = "Failure"

= A patch with an old version is a conflict
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
& rv /metadata/resourceVersion
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": {"k": "v"}}
? metadata.resourceVersion
< 200
< metadata.resourceVersion = "v2"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"resourceVersion": "$rv"}, "data": {"k": "w"}}
< 409 Conflict
< apiVersion = "v1"
< code = 409
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
< metadata = {}
< reason = "Conflict"
< status = "Failure"

= A patch cannot change name and uid
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"name": "b"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the name of the object (b) does not match the name on the URL (a)"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"uid": "b17d2c5e-0000-4000-8000-000000000000"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.uid"
< details.causes[0].message = "Invalid value: \"b17d2c5e-0000-4000-8000-000000000000\": field is immutable"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "metadata.uid"
< details.causes[1].message = "Invalid value: \"b17d2c5e-0000-4000-8000-000000000000\": field is immutable"
< details.causes[1].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"b17d2c5e-0000-4000-8000-000000000000\": field is immutable"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A patch to a wrong type is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": "text"}
- message *message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "patch"
< details.causes[0].reason = "FieldValueInvalid"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A strategic patch merges lists by their keys
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "b:1"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"template": {"spec": {"containers": [{"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "2"}]}, {"name": "c", "image": "c:1"}]}}}
? template.spec.containers
- template.spec.containers[0].terminationMessagePath template.spec.containers[1].terminationMessagePath template.spec.containers[2].terminationMessagePath
< 200
< template.spec.containers[0].env[0].name = "Y"
< template.spec.containers[0].env[0].value = "2"
< template.spec.containers[0].env[1].name = "X"
< template.spec.containers[0].env[1].value = "1"
< template.spec.containers[0].image = "a:2"
< template.spec.containers[0].imagePullPolicy = "IfNotPresent"
< template.spec.containers[0].name = "a"
< template.spec.containers[0].resources = {}
< template.spec.containers[0].terminationMessagePolicy = "File"
< template.spec.containers[1].image = "c:1"
< template.spec.containers[1].imagePullPolicy = "IfNotPresent"
< template.spec.containers[1].name = "c"
< template.spec.containers[1].resources = {}
< template.spec.containers[1].terminationMessagePolicy = "File"
< template.spec.containers[2].image = "b:1"
< template.spec.containers[2].imagePullPolicy = "IfNotPresent"
< template.spec.containers[2].name = "b"
< template.spec.containers[2].resources = {}
< template.spec.containers[2].terminationMessagePolicy = "File"

= A strategic patch deletes from lists
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}
? template.spec.containers[0].name template.spec.containers[1].name
< 200
< template.spec.containers[0].name = "b"

= A strategic patch replaces lists and maps when it says so
! 1.20: newer servers omit a creation timestamp that is not set
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"metadata": {"labels": {"x": "y", "z": "1"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"template": {"metadata": {"labels": {"$patch": "replace", "only": "this"}}, "spec": {"containers": [{"name": "c", "image": "c:1"}, {"$patch": "replace"}]}}}
? template.metadata template.spec.containers[0].name template.spec.containers[1].name
< 200
< template.metadata.labels.only = "this"
< template.spec.containers[0].name = "c"
<1.20 200
<1.20 template.metadata.creationTimestamp = null
<1.20 template.metadata.labels.only = "this"
<1.20 template.spec.containers[0].name = "c"

= A strategic patch orders lists
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"template": {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "n"}, {"name": "a"}], "containers": [{"name": "n", "image": "n:1"}]}}}
? template.spec.containers[0].name template.spec.containers[1].name template.spec.containers[2].name
< 200
< template.spec.containers[0].name = "b"
< template.spec.containers[1].name = "n"
< template.spec.containers[2].name = "a"

= A strategic patch retains keys of a union
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"metadata": {"name": "a"}, "spec": {"paused": true, "replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3}}}}
? spec.strategy
< 201
< spec.strategy.rollingUpdate.maxSurge = 3
< spec.strategy.rollingUpdate.maxUnavailable = "25%"
< spec.strategy.type = "RollingUpdate"
> PATCH /apis/apps/v1/namespaces/$ns/deployments/a
@ Content-Type: application/strategic-merge-patch+json
| {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
? spec.strategy
< 200
< spec.strategy.type = "Recreate"

= A strategic patch deletes from lists of values
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "finalizers": ["x.io/a", "x.io/b", "x.io/c"]}}
? metadata.finalizers
< 201
< metadata.finalizers[0] = "x.io/a"
< metadata.finalizers[1] = "x.io/b"
< metadata.finalizers[2] = "x.io/c"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/strategic-merge-patch+json
| {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/b"]}}
? metadata.finalizers
< 200
< metadata.finalizers[0] = "x.io/a"
< metadata.finalizers[1] = "x.io/c"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/strategic-merge-patch+json
| {"metadata": {"$setElementOrder/finalizers": ["x.io/d", "x.io/c", "x.io/a"], "finalizers": ["x.io/d"]}}
? metadata.finalizers
< 200
< metadata.finalizers[0] = "x.io/d"
< metadata.finalizers[1] = "x.io/c"
< metadata.finalizers[2] = "x.io/a"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"finalizers": null}}
? metadata.finalizers
< 200

= A strategic patch replaces lists without keys
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "a", "image": "a:1", "args": ["1", "2"]}], "tolerations": [{"key": "x", "operator": "Exists"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"template": {"spec": {"containers": [{"name": "a", "args": ["3"]}], "tolerations": [{"key": "y", "operator": "Exists"}]}}}
? template.spec.containers[0].args template.spec.tolerations
< 200
< template.spec.containers[0].args[0] = "3"
< template.spec.tolerations[0].key = "y"
< template.spec.tolerations[0].operator = "Exists"

= A strategic patch without the key of a list is refused
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"template": {"spec": {"containers": [{"image": "a:2"}]}}}
- message details
< 500
< apiVersion = "v1"
< code = 500
< kind = "Status"
< metadata = {}
< status = "Failure"

= A strategic patch with an unknown directive is refused
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"template": {"$patch": "explode"}}
< 500
< apiVersion = "v1"
< code = 500
< kind = "Status"
< message = "unknown patch type: explode in map: map[$patch:explode]"
< metadata = {}
< status = "Failure"

= Ports merge by their number
> POST /api/v1/namespaces/$ns/services
| {"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}}
? spec.ports
< 201
< spec.ports[0].name = "a"
< spec.ports[0].port = 80
< spec.ports[0].protocol = "TCP"
< spec.ports[0].targetPort = 80
< spec.ports[1].name = "b"
< spec.ports[1].port = 81
< spec.ports[1].protocol = "TCP"
< spec.ports[1].targetPort = 81
> PATCH /api/v1/namespaces/$ns/services/a
@ Content-Type: application/strategic-merge-patch+json
| {"spec": {"ports": [{"port": 80, "targetPort": "web"}]}}
? spec.ports
< 200
< spec.ports[0].name = "a"
< spec.ports[0].port = 80
< spec.ports[0].protocol = "TCP"
< spec.ports[0].targetPort = "web"
< spec.ports[1].name = "b"
< spec.ports[1].port = 81
< spec.ports[1].protocol = "TCP"
< spec.ports[1].targetPort = 81

= A null in a strategic patch removes
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a", "labels": {"x": "y"}}, "template": {"spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}]}}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/podtemplates/a
@ Content-Type: application/strategic-merge-patch+json
| {"metadata": {"labels": null}, "template": {"spec": {"nodeSelector": null, "containers": [{"name": "a", "env": null}]}}}
? metadata.labels template.spec.nodeSelector template.spec.containers[0].env template.spec.containers[0].image
< 200
< template.spec.containers[0].image = "a:1"

= A strict patch with unknown fields is rejected
! from 1.27: old servers do not check for unknown fields
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/configmaps/a?fieldValidation=Strict
@ Content-Type: application/strategic-merge-patch+json
| {"nope": 1, "metadata": {"wrong": 2}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "patch"
< details.causes[0].message = "Invalid value: \"map[metadata:map[wrong:2] nope:1]\": strict decoding error: unknown field \"metadata.wrong\", unknown field \"nope\""
< details.causes[0].reason = "FieldValueInvalid"
< kind = "Status"
< message = " \"\" is invalid: patch: Invalid value: \"map[metadata:map[wrong:2] nope:1]\": strict decoding error: unknown field \"metadata.wrong\", unknown field \"nope\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a?fieldValidation=Strict
@ Content-Type: application/merge-patch+json
| {"nope": 1}
# Their text has all of the object with who wrote what, which is not kept here.
- message *message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "patch"
< details.causes[0].reason = "FieldValueInvalid"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a?fieldValidation=Strict
@ Content-Type: application/json-patch+json
| [{"op": "add", "path": "/nope", "value": 1}]
- message *message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "patch"
< details.causes[0].reason = "FieldValueInvalid"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a?fieldValidation=Strict
@ Content-Type: application/json-patch+json
| [{"op": "add", "path": "/data/x", "value": "y", "more": 1}]
- message *message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "patch"
< details.causes[0].reason = "FieldValueInvalid"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a?fieldValidation=Ignore
@ Content-Type: application/merge-patch+json
| {"nope": 1}
? metadata.name nope
% warning
< 200
< metadata.name = "a"
< warning: -

= Rejected requests have warnings too
! from 1.27: old servers do not check for unknown fields
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "nope": 1, "data": {"bad key": "v"}}
? reason
% warning
< 422 Invalid
< reason = "Invalid"
< warning: 299 - "unknown field \"nope\""
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.name
% warning
< 201
< metadata.name = "a"
< warning: -
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "add", "path": "/metadata/name", "value": "b", "more": 1}]
? reason
% warning
< 400 BadRequest
< reason = "BadRequest"
< warning: 299 - "json patch unknown field \"[0].more\""
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/json-patch+json
| [{"op": "add", "path": "/data", "value": {"k": "v"}, "more": 1}]
? data
% warning
< 200
< data.k = "v"
< warning: 299 - "json patch unknown field \"[0].more\""
