# Lists: versions, pages and selectors.

= A list has its objects in the order of their names
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "cmp-b"}}
? metadata.name
< 201
< metadata.name = "cmp-b"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "cmp-a"}}
? metadata.name
< 201
< metadata.name = "cmp-a"
> GET /api/v1/namespaces/$ns/configmaps?fieldSelector=metadata.name!=kube-root-ca.crt
< 200
< apiVersion = "v1"
< items[0].metadata.creationTimestamp = "TIME"
< items[0].metadata.name = "cmp-a"
< items[0].metadata.namespace = "$ns"
< items[0].metadata.resourceVersion = "v2"
< items[0].metadata.uid = "uid2"
< items[1].metadata.creationTimestamp = "TIME"
< items[1].metadata.name = "cmp-b"
< items[1].metadata.namespace = "$ns"
< items[1].metadata.resourceVersion = "v1"
< items[1].metadata.uid = "uid1"
< kind = "ConfigMapList"
< metadata.resourceVersion = "VERSION"

= An empty list has an empty array
> GET /api/v1/namespaces/$ns/podtemplates
< 200
< apiVersion = "v1"
< items = []
< kind = "PodTemplateList"
< metadata.resourceVersion = "VERSION"

= A namespace that is not there has an empty list
> GET /api/v1/namespaces/$ns-not/podtemplates
< 200
< apiVersion = "v1"
< items = []
< kind = "PodTemplateList"
< metadata.resourceVersion = "VERSION"

= A list in pages
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "a"}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
? metadata.name
< 201
< metadata.name = "a"
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "b"}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
? metadata.name
< 201
< metadata.name = "b"
> POST /api/v1/namespaces/$ns/podtemplates
| {"metadata": {"name": "c"}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
? metadata.name
< 201
< metadata.name = "c"
> GET /api/v1/namespaces/$ns/podtemplates?limit=2
& token /metadata/continue
& rv /metadata/resourceVersion
? metadata items[0].metadata.name items[1].metadata.name items[2].metadata.name
< 200
< items[0].metadata.name = "a"
< items[1].metadata.name = "b"
< metadata.continue = "TOKEN"
< metadata.remainingItemCount = 1
< metadata.resourceVersion = "VERSION"
> DELETE /api/v1/namespaces/$ns/podtemplates/c
? metadata.name
# The second page is of the same moment as the first one.
< 200
< metadata.name = "c"
> GET /api/v1/namespaces/$ns/podtemplates?limit=2&continue=$token
? metadata items[0].metadata.name items[1].metadata.name
< 200
< items[0].metadata.name = "c"
< metadata.resourceVersion = "VERSION"
> GET /api/v1/namespaces/$ns/podtemplates?limit=2&continue=$token&resourceVersion=$rv
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "specifying resource version is not allowed when using continue"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A page of a selection does not tell how much is left
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
? metadata.name
< 201
< metadata.name = "a"
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "b", "labels": {"x": "y"}}}
? metadata.name
< 201
< metadata.name = "b"
> GET /api/v1/namespaces/$ns/secrets?limit=1&labelSelector=x%3Dy
? metadata items[0].metadata.name
< 200
< items[0].metadata.name = "a"
< metadata.continue = "TOKEN"
< metadata.resourceVersion = "VERSION"

= A malformed token is rejected
! 1.20: newer servers omit the quotes
> GET /api/v1/namespaces/$ns/configmaps?limit=2&continue=e30
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "invalid continue token: continue key is not valid: server does not recognize this encoded version "
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
<1.20 400 BadRequest
<1.20 apiVersion = "v1"
<1.20 code = 400
<1.20 kind = "Status"
<1.20 message = "invalid continue token: continue key is not valid: server does not recognize this encoded version \"\""
<1.20 metadata = {}
<1.20 reason = "BadRequest"
<1.20 status = "Failure"

= A list of version 0 is any list
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets?resourceVersion=0&labelSelector=x%3Dy
* until items[0].metadata.name = "a"
? items[0].metadata.name
< 200
< items[0].metadata.name = "a"

= A list not older than a version has what was written then
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
& rv /metadata/resourceVersion
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets?resourceVersion=$rv&resourceVersionMatch=NotOlderThan&labelSelector=x%3Dy
? items[0].metadata.name
< 200
< items[0].metadata.name = "a"

= A list of an exact version is of that moment
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"x": "y"}}}
& rv /metadata/resourceVersion
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns/secrets/a
? status
< 200
< status = "Success"
> GET /api/v1/namespaces/$ns/secrets?resourceVersion=$rv&resourceVersionMatch=Exact&labelSelector=x%3Dy
? items[0].metadata.name
< 200
< items[0].metadata.name = "a"

= What to match needs a version
> GET /api/v1/namespaces/$ns/configmaps?resourceVersionMatch=Exact
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "resourceVersionMatch"
< details.causes[0].message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
< details.causes[0].reason = "FieldValueForbidden"
< details.group = "meta.k8s.io"
< details.kind = "ListOptions"
< kind = "Status"
< message = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> GET /api/v1/namespaces/$ns/configmaps?resourceVersion=0&resourceVersionMatch=Exact
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "resourceVersionMatch"
< details.causes[0].message = "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""
< details.causes[0].reason = "FieldValueForbidden"
< details.group = "meta.k8s.io"
< details.kind = "ListOptions"
< kind = "Status"
< message = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> GET /api/v1/namespaces/$ns/configmaps?resourceVersion=1&resourceVersionMatch=Any
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "resourceVersionMatch"
< details.causes[0].message = "Unsupported value: \"Any\": supported values: \"Exact\", \"NotOlderThan\", \"\""
< details.causes[0].reason = "FieldValueNotSupported"
< details.group = "meta.k8s.io"
< details.kind = "ListOptions"
< kind = "Status"
< message = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Any\": supported values: \"Exact\", \"NotOlderThan\", \"\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A version from the future is not there yet
> GET /api/v1/namespaces/$ns/configmaps?resourceVersion=99999999999
- details.retryAfterSeconds
< 504 Timeout
< apiVersion = "v1"
< code = 504
< details.causes[0].message = "Too large resource version"
< details.causes[0].reason = "ResourceVersionTooLarge"
< kind = "Status"
< message = "Timeout: Too large resource version: 99999999999, current: N"
< metadata = {}
< reason = "Timeout"
< status = "Failure"

= A resource version is a number
! 1.20: newer servers call it a bad request
> GET /api/v1/namespaces/$ns/configmaps?resourceVersion=abc
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
<1.20 500
<1.20 apiVersion = "v1"
<1.20 code = 500
<1.20 kind = "Status"
<1.20 message = "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax"
<1.20 metadata = {}
<1.20 status = "Failure"

= Label selectors choose
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"app": "x", "tier": "front"}}}
? metadata.name
< 201
< metadata.name = "a"
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "b", "labels": {"app": "x"}}}
? metadata.name
< 201
< metadata.name = "b"
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "c", "labels": {"app": "z", "tier": "back"}}}
? metadata.name
< 201
< metadata.name = "c"
> GET /api/v1/namespaces/$ns/secrets?labelSelector=app%3Dx
? items[0].metadata.name items[1].metadata.name items[2].metadata.name
< 200
< items[0].metadata.name = "a"
< items[1].metadata.name = "b"
> GET /api/v1/namespaces/$ns/secrets?labelSelector=app%20in%20(x,z),tier!%3Dfront
? items[0].metadata.name items[1].metadata.name items[2].metadata.name
< 200
< items[0].metadata.name = "b"
< items[1].metadata.name = "c"
> GET /api/v1/namespaces/$ns/secrets?labelSelector=app,!tier
? items[0].metadata.name items[1].metadata.name items[2].metadata.name
< 200
< items[0].metadata.name = "b"
> GET /api/v1/namespaces/$ns/secrets?labelSelector=tier%20notin%20(front),app
? items[0].metadata.name items[1].metadata.name items[2].metadata.name
< 200
< items[0].metadata.name = "b"
< items[1].metadata.name = "c"

= Field selectors choose
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a"}, "type": "example.com/own"}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets?fieldSelector=metadata.name%3Da
? items[0].metadata.name items[1].metadata.name
< 200
< items[0].metadata.name = "a"
> GET /api/v1/namespaces/$ns/secrets?fieldSelector=type%3Dexample.com/own,metadata.namespace%3D$ns
? items[0].metadata.name items[1].metadata.name
< 200
< items[0].metadata.name = "a"

= A malformed label selector is rejected
! 1.20: the text about keys is different in newer servers
> GET /api/v1/namespaces/$ns/configmaps?labelSelector=a%20in%20x
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "unable to parse requirement: found 'x' expected: '('"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> GET /api/v1/namespaces/$ns/configmaps?labelSelector=a%3D%3D%3Db
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "unable to parse requirement: found '=', expected: identifier"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> GET /api/v1/namespaces/$ns/configmaps?labelSelector=a%20in%20(x
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "unable to parse requirement: found '', expected: ',' or ')'"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> GET /api/v1/namespaces/$ns/configmaps?labelSelector=-a%3Db
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
<1.20 400 BadRequest
<1.20 apiVersion = "v1"
<1.20 code = 400
<1.20 kind = "Status"
<1.20 message = "unable to parse requirement: invalid label key \"-a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
<1.20 metadata = {}
<1.20 reason = "BadRequest"
<1.20 status = "Failure"

= A field selector for an unknown field is refused
> GET /api/v1/namespaces/$ns/configmaps?fieldSelector=spec.x%3Dy
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> GET /api/v1/namespaces/$ns/pods?fieldSelector=spec.x%3Dy
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "field label not supported: spec.x"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> GET /api/v1/namespaces/$ns/configmaps?fieldSelector=metadata.name
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "invalid selector: 'metadata.name'; can't understand 'metadata.name'"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"

= A list over all namespaces
> POST /api/v1/namespaces/$ns/secrets
| {"metadata": {"name": "a", "labels": {"in": "$ns"}}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/secrets?labelSelector=in%3D$ns
? items[0].metadata kind apiVersion
< 200
< apiVersion = "v1"
< items[0].metadata.creationTimestamp = "TIME"
< items[0].metadata.labels.in = "$ns"
< items[0].metadata.name = "a"
< items[0].metadata.namespace = "$ns"
< items[0].metadata.resourceVersion = "v1"
< items[0].metadata.uid = "uid1"
< kind = "SecretList"

= Pods are chosen by node and phase
> POST /api/v1/namespaces/$ns/pods
| {"metadata": {"name": "a"}, "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "i"}]}}
? metadata.name
< 201
< metadata.name = "a"
> GET /api/v1/namespaces/$ns/pods?fieldSelector=spec.nodeName%3D,status.phase%3DPending
? items[0].metadata.name
< 200
< items[0].metadata.name = "a"
> GET /api/v1/namespaces/$ns/pods?fieldSelector=status.phase!%3DPending
? items
< 200
< items = []
> GET /api/v1/namespaces/$ns/pods?fieldSelector=spec.schedulerName%3Dnone,spec.restartPolicy%3DAlways
? items[0].metadata.name
< 200
< items[0].metadata.name = "a"
