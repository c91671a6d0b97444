# Creating, reading and updating.

= A new object gets its uid, its version and its time
> POST /api/v1/namespaces/$ns/configmaps
| {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}}
< 201
< apiVersion = "v1"
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> GET /api/v1/namespaces/$ns/configmaps/a
< 200
< apiVersion = "v1"
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= A body without kind is of the kind that the path says
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
< 201
< apiVersion = "v1"
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= A body of another kind is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A body of another version is refused
> POST /apis/apps/v1/namespaces/$ns/deployments
| {"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "a"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "Deployment in version \"v1\" cannot be handled as a Deployment: no kind \"Deployment\" is registered for version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A body of a kind that nobody knows is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "a"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "Nothing in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nothing\" is registered for version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A second object of the same name is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.name
< 201
< metadata.name = "a"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
< 409 AlreadyExists
< apiVersion = "v1"
< code = 409
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" already exists"
< metadata = {}
< reason = "AlreadyExists"
< status = "Failure"

= An object without a name is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.name"
< details.causes[0].message = "Required value: name or generateName is required"
< details.causes[0].reason = "FieldValueRequired"
< details.kind = "ConfigMap"
< kind = "Status"
< message = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A name is made from a prefix
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"generateName": "some-"}}
< 201
< apiVersion = "v1"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.generateName = "some-"
< metadata.name = "some-*****"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= A prefix with wrong letters is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"generateName": "Some_"}}
- message details.name details.causes[0].message details.causes[1].message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.generateName"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "metadata.name"
< details.causes[1].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A name with capital letters is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "Aa_b"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.name"
< details.causes[0].message = "Invalid value: \"Aa_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
< details.causes[0].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "Aa_b"
< kind = "Status"
< message = "ConfigMap \"Aa_b\" is invalid: metadata.name: Invalid value: \"Aa_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A name that is too long is refused
> POST /api/v1/namespaces/$ns/services
| {"metadata": {"name": "a234567890123456789012345678901234567890123456789012345678901234"}, "spec": {"ports": [{"port": 80}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.name"
< details.causes[0].message = "Invalid value: \"a234567890123456789012345678901234567890123456789012345678901234\": must be no more than 63 characters"
< details.causes[0].reason = "FieldValueInvalid"
< details.kind = "Service"
< details.name = "a234567890123456789012345678901234567890123456789012345678901234"
< kind = "Status"
< message = "Service \"a234567890123456789012345678901234567890123456789012345678901234\" is invalid: metadata.name: Invalid value: \"a234567890123456789012345678901234567890123456789012345678901234\": must be no more than 63 characters"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A name of a service begins with a letter
> POST /api/v1/namespaces/$ns/services
| {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 80}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.name"
< details.causes[0].message = "Invalid value: \"1a\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
< details.causes[0].reason = "FieldValueInvalid"
< details.kind = "Service"
< details.name = "1a"
< kind = "Status"
< message = "Service \"1a\" is invalid: metadata.name: Invalid value: \"1a\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= Labels and annotations are checked
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "labels": {"-x": "not good!"}, "annotations": {"/": "z"}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.labels"
< details.causes[0].message = "Invalid value: \"-x\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "metadata.labels"
< details.causes[1].message = "Invalid value: \"not good!\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
< details.causes[1].reason = "FieldValueInvalid"
< details.causes[2].field = "metadata.annotations"
< details.causes[2].message = "Invalid value: \"/\": prefix part must be non-empty"
< details.causes[2].reason = "FieldValueInvalid"
< details.causes[3].field = "metadata.annotations"
< details.causes[3].message = "Invalid value: \"/\": name part must be non-empty"
< details.causes[3].reason = "FieldValueInvalid"
< details.causes[4].field = "metadata.annotations"
< details.causes[4].message = "Invalid value: \"/\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
< details.causes[4].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: [metadata.labels: Invalid value: \"-x\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), metadata.labels: Invalid value: \"not good!\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'), metadata.annotations: Invalid value: \"/\": prefix part must be non-empty, metadata.annotations: Invalid value: \"/\": name part must be non-empty, metadata.annotations: Invalid value: \"/\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A label that is too long is rejected
! 1.20: newer servers count bytes
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "labels": {"k": "a234567890123456789012345678901234567890123456789012345678901234"}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.labels"
< details.causes[0].message = "Invalid value: \"a234567890123456789012345678901234567890123456789012345678901234\": must be no more than 63 bytes"
< details.causes[0].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"a234567890123456789012345678901234567890123456789012345678901234\": must be no more than 63 bytes"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "metadata.labels"
<1.20 details.causes[0].message = "Invalid value: \"a234567890123456789012345678901234567890123456789012345678901234\": must be no more than 63 characters"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.kind = "ConfigMap"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"a234567890123456789012345678901234567890123456789012345678901234\": must be no more than 63 characters"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= A namespace in the body must be that of the path
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "namespace": "other"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the namespace of the provided object does not match the namespace sent on the request"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A new object with a version is refused
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "resourceVersion": "1"}}
< 500
< apiVersion = "v1"
< code = 500
< kind = "Status"
< message = "resourceVersion should not be set on objects to be created"
< metadata = {}
< status = "Failure"

= A uid in the body of a new object is not taken over
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}}
< 201
< apiVersion = "v1"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 7
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"

= An object in a namespace that is not there is refused
> POST /api/v1/namespaces/$ns-not/configmaps
| {"metadata": {"name": "a"}}
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "namespaces"
< details.name = "$ns-not"
< kind = "Status"
< message = "namespaces \"$ns-not\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"

= An object that is not there is not found
> GET /api/v1/namespaces/$ns/configmaps/nothing
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "configmaps"
< details.name = "nothing"
< kind = "Status"
< message = "configmaps \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> GET /apis/apps/v1/namespaces/$ns/deployments/nothing
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.group = "apps"
< details.kind = "deployments"
< details.name = "nothing"
< kind = "Status"
< message = "deployments.apps \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> PUT /api/v1/namespaces/$ns/configmaps/nothing
| {"metadata": {"name": "nothing"}}
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "configmaps"
< details.name = "nothing"
< kind = "Status"
< message = "configmaps \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/nothing
@ Content-Type: application/merge-patch+json
| {}
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "configmaps"
< details.name = "nothing"
< kind = "Status"
< message = "configmaps \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"
> DELETE /api/v1/namespaces/$ns/configmaps/nothing
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "configmaps"
< details.name = "nothing"
< kind = "Status"
< message = "configmaps \"nothing\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"

= An update replaces the whole object
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}}
& rv /metadata/resourceVersion
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.labels.x = "y"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a", "resourceVersion": "$rv"}, "data": {"other": "w"}}
< 200
< apiVersion = "v1"
< data.other = "w"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"

= An update without a version always wins
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
< 200
< apiVersion = "v1"
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"

= An update of an older version is a conflict
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
& rv /metadata/resourceVersion
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a", "resourceVersion": "$rv"}, "data": {"k": "v"}}
? metadata.resourceVersion data
< 200
< data.k = "v"
< metadata.resourceVersion = "v2"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a", "resourceVersion": "$rv"}, "data": {"k": "w"}}
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

= An update of another uid is a conflict
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.uid
< 201
< metadata.uid = "uid1"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a", "uid": "b17d2c5e-0000-4000-8000-000000000000"}, "data": {"k": "v"}}
< 409 Conflict
< apiVersion = "v1"
< code = 409
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: /registry/configmaps/$ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: b17d2c5e-0000-4000-8000-000000000000, UID in object meta: uid1"
< metadata = {}
< reason = "Conflict"
< status = "Failure"

= An update that changes nothing keeps the version
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.resourceVersion
< 200
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": {"k": "v"}}
? metadata.resourceVersion
< 200
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": {"k": "w"}}
? metadata.resourceVersion
< 200
< metadata.resourceVersion = "v2"

= The name in the body must be that of the path
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata.name
< 201
< metadata.name = "a"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "b"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the name of the object (b) does not match the name on the URL (a)"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the name of the object (a based on URL) was undeterminable: name must be provided"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= The server keeps what belongs to it
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}}
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> PUT /api/v1/namespaces/$ns/configmaps/a
| {"metadata": {"name": "a", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 5, "selfLink": "/x", "generateName": "x-"}}
< 200
< apiVersion = "v1"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.generateName = "x-"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v2"
< metadata.uid = "uid1"

= Some kinds are created by an update
! 1.20: old servers print this number in hexadecimal
> PUT /apis/coordination.k8s.io/v1/namespaces/$ns/leases/a
| {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
< 201
< apiVersion = "coordination.k8s.io/v1"
< kind = "Lease"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.holderIdentity = "me"
> PUT /apis/coordination.k8s.io/v1/namespaces/$ns/leases/a
| {"metadata": {"name": "a"}, "spec": {"holderIdentity": "you"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.resourceVersion"
< details.causes[0].message = "Invalid value: 0: must be specified for an update"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "coordination.k8s.io"
< details.kind = "leases"
< details.name = "a"
< kind = "Status"
< message = "leases.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "metadata.resourceVersion"
<1.20 details.causes[0].message = "Invalid value: 0x0: must be specified for an update"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.group = "coordination.k8s.io"
<1.20 details.kind = "leases"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "leases.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= An immutable config map stays as it is
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}, "immutable": true}
< 201
< apiVersion = "v1"
< data.k = "v"
< immutable = true
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": {"k": "w"}, "immutable": false}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "immutable"
< details.causes[0].message = "Forbidden: field is immutable when `immutable` is set"
< details.causes[0].reason = "FieldValueForbidden"
< details.causes[1].field = "data"
< details.causes[1].message = "Forbidden: field is immutable when `immutable` is set"
< details.causes[1].reason = "FieldValueForbidden"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: [immutable: Forbidden: field is immutable when `immutable` is set, data: Forbidden: field is immutable when `immutable` is set]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"x": "y"}}}
? metadata.labels data
< 200
< data.k = "v"
< metadata.labels.x = "y"

= Keys of config maps are checked
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"not good": "v"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "data[not good]"
< details.causes[0].message = "Invalid value: \"not good\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
< details.causes[0].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: data[not good]: Invalid value: \"not good\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= Secrets take text and give base64
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a"}, "stringData": {"k": "v"}, "data": {"k": "b2xk", "l": "bGw="}}
< 201
< apiVersion = "v1"
< data.k = "dg=="
< data.l = "bGw="
< kind = "Secret"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< type = "Opaque"

= A finalizer needs a good name
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "finalizers": ["bad", "also bad!"]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.finalizers"
< details.causes[0].message = "Invalid value: \"also bad!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "metadata.finalizers[0]"
< details.causes[1].message = "Invalid value: \"bad\": name is neither a standard finalizer name nor is it fully qualified"
< details.causes[1].reason = "FieldValueInvalid"
< details.causes[2].field = "metadata.finalizers[1]"
< details.causes[2].message = "Invalid value: \"also bad!\": name is neither a standard finalizer name nor is it fully qualified"
< details.causes[2].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: [metadata.finalizers: Invalid value: \"also bad!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), metadata.finalizers[0]: Invalid value: \"bad\": name is neither a standard finalizer name nor is it fully qualified, metadata.finalizers[1]: Invalid value: \"also bad!\": name is neither a standard finalizer name nor is it fully qualified]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= Owner references are validated
! 1.20: newer servers print values in JSON
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "ownerReferences": [{"kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.ownerReferences.apiVersion"
< details.causes[0].message = "Invalid value: \"\": version must not be empty"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "metadata.ownerReferences.name"
< details.causes[1].message = "Invalid value: \"\": must not be empty"
< details.causes[1].reason = "FieldValueInvalid"
< details.causes[2].field = "metadata.ownerReferences.uid"
< details.causes[2].message = "Invalid value: \"\": must not be empty"
< details.causes[2].reason = "FieldValueInvalid"
< details.causes[3].field = "metadata.ownerReferences"
< details.causes[3].message = "Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner"
< details.causes[3].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: [metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty, metadata.ownerReferences.name: Invalid value: \"\": must not be empty, metadata.ownerReferences.uid: Invalid value: \"\": must not be empty, metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "metadata.ownerReferences.apiVersion"
<1.20 details.causes[0].message = "Invalid value: \"\": version must not be empty"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.causes[1].field = "metadata.ownerReferences.name"
<1.20 details.causes[1].message = "Invalid value: \"\": name must not be empty"
<1.20 details.causes[1].reason = "FieldValueInvalid"
<1.20 details.causes[2].field = "metadata.ownerReferences.uid"
<1.20 details.causes[2].message = "Invalid value: \"\": uid must not be empty"
<1.20 details.causes[2].reason = "FieldValueInvalid"
<1.20 details.causes[3].field = "metadata.ownerReferences"
<1.20 details.causes[3].message = "Invalid value: v1.OwnerReference{APIVersion:\"v1\", Kind:\"Event\", Name:\"e\", UID:\"u\", Controller:(*bool)(nil), BlockOwnerDeletion:(*bool)(nil)}: /v1, Kind=Event is disallowed from being an owner"
<1.20 details.causes[3].reason = "FieldValueInvalid"
<1.20 details.kind = "ConfigMap"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "ConfigMap \"a\" is invalid: [metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty, metadata.ownerReferences.name: Invalid value: \"\": name must not be empty, metadata.ownerReferences.uid: Invalid value: \"\": uid must not be empty, metadata.ownerReferences: Invalid value: v1.OwnerReference{APIVersion:\"v1\", Kind:\"Event\", Name:\"e\", UID:\"u\", Controller:(*bool)(nil), BlockOwnerDeletion:(*bool)(nil)}: /v1, Kind=Event is disallowed from being an owner]"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= An object has at most one controller
! 1.20: newer servers print values in JSON and name the kinds
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1", "controller": true}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "y", "uid": "2", "controller": true}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.ownerReferences"
< details.causes[0].message = "Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"x\",\"uid\":\"1\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"y\",\"uid\":\"2\",\"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for ConfigMap/x and ConfigMap/y"
< details.causes[0].reason = "FieldValueInvalid"
< details.kind = "ConfigMap"
< details.name = "a"
< kind = "Status"
< message = "ConfigMap \"a\" is invalid: metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"x\",\"uid\":\"1\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"y\",\"uid\":\"2\",\"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for ConfigMap/x and ConfigMap/y"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "metadata.ownerReferences"
<1.20 details.causes[0].message = "Invalid value: []v1.OwnerReference{v1.OwnerReference{APIVersion:\"v1\", Kind:\"ConfigMap\", Name:\"x\", UID:\"1\", Controller:(*bool)(POINTER), BlockOwnerDeletion:(*bool)(nil)}, v1.OwnerReference{APIVersion:\"v1\", Kind:\"ConfigMap\", Name:\"y\", UID:\"2\", Controller:(*bool)(POINTER), BlockOwnerDeletion:(*bool)(nil)}}: Only one reference can have Controller set to true. Found \"true\" in references for x and y"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.kind = "ConfigMap"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "ConfigMap \"a\" is invalid: metadata.ownerReferences: Invalid value: []v1.OwnerReference{v1.OwnerReference{APIVersion:\"v1\", Kind:\"ConfigMap\", Name:\"x\", UID:\"1\", Controller:(*bool)(POINTER), BlockOwnerDeletion:(*bool)(nil)}, v1.OwnerReference{APIVersion:\"v1\", Kind:\"ConfigMap\", Name:\"y\", UID:\"2\", Controller:(*bool)(POINTER), BlockOwnerDeletion:(*bool)(nil)}}: Only one reference can have Controller set to true. Found \"true\" in references for x and y"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= A dry run answers and keeps nothing
> POST /api/v1/namespaces/$ns/configmaps?dryRun=All
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
- metadata.resourceVersion
< 201
< apiVersion = "v1"
< data.k = "v"
< kind = "ConfigMap"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.uid = "uid1"
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
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"k": "v"}}
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v1"
> PATCH /api/v1/namespaces/$ns/configmaps/a?dryRun=All
@ Content-Type: application/merge-patch+json
| {"data": {"k": "w"}}
? data
< 200
< data.k = "w"
> DELETE /api/v1/namespaces/$ns/configmaps/a?dryRun=All
< 200
< apiVersion = "v1"
< details.kind = "configmaps"
< details.name = "a"
< details.uid = "uid2"
< kind = "Status"
< metadata = {}
< status = "Success"
> GET /api/v1/namespaces/$ns/configmaps/a
? metadata.resourceVersion data
< 200
< data.k = "v"
< metadata.resourceVersion = "v1"

= A dry run of anything but All is rejected
! 1.20: newer servers print values in JSON
> POST /api/v1/namespaces/$ns/configmaps?dryRun=Some
| {"metadata": {"name": "a"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "dryRun"
< details.causes[0].message = "Unsupported value: [\"Some\"]: supported values: \"All\""
< details.causes[0].reason = "FieldValueNotSupported"
< details.group = "meta.k8s.io"
< details.kind = "CreateOptions"
< kind = "Status"
< message = "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "dryRun"
<1.20 details.causes[0].message = "Unsupported value: []string{\"Some\"}: supported values: \"All\""
<1.20 details.causes[0].reason = "FieldValueNotSupported"
<1.20 details.group = "meta.k8s.io"
<1.20 details.kind = "CreateOptions"
<1.20 kind = "Status"
<1.20 message = "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: []string{\"Some\"}: supported values: \"All\""
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> DELETE /api/v1/namespaces/$ns/configmaps/a
| {"dryRun": ["Some"]}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "dryRun"
< details.causes[0].message = "Unsupported value: [\"Some\"]: supported values: \"All\""
< details.causes[0].reason = "FieldValueNotSupported"
< details.group = "meta.k8s.io"
< details.kind = "DeleteOptions"
< kind = "Status"
< message = "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "dryRun"
<1.20 details.causes[0].message = "Unsupported value: []string{\"Some\"}: supported values: \"All\""
<1.20 details.causes[0].reason = "FieldValueNotSupported"
<1.20 details.group = "meta.k8s.io"
<1.20 details.kind = "DeleteOptions"
<1.20 kind = "Status"
<1.20 message = "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: []string{\"Some\"}: supported values: \"All\""
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
