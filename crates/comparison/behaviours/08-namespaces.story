# The life of a namespace.

= A namespace becomes active
! 1.20: the label with the name is newer
> POST /api/v1/namespaces
| {"metadata": {"name": "$ns-b"}}
< 201
< apiVersion = "v1"
< kind = "Namespace"
< metadata.creationTimestamp = "TIME"
< metadata.labels["kubernetes.io/metadata.name"] = "$ns-b"
< metadata.name = "$ns-b"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.finalizers[0] = "kubernetes"
< status.phase = "Active"
<1.20 201
<1.20 apiVersion = "v1"
<1.20 kind = "Namespace"
<1.20 metadata.creationTimestamp = "TIME"
<1.20 metadata.name = "$ns-b"
<1.20 metadata.resourceVersion = "v1"
<1.20 metadata.uid = "uid1"
<1.20 spec.finalizers[0] = "kubernetes"
<1.20 status.phase = "Active"
> DELETE /api/v1/namespaces/$ns-b
? metadata.deletionTimestamp metadata.deletionGracePeriodSeconds metadata.finalizers spec status.phase
< 200
< metadata.deletionTimestamp = "TIME"
< spec.finalizers[0] = "kubernetes"
< status.phase = "Terminating"
> GET /api/v1/namespaces/$ns-b
* until 404
< 404 NotFound
< apiVersion = "v1"
< code = 404
< details.kind = "namespaces"
< details.name = "$ns-b"
< kind = "Status"
< message = "namespaces \"$ns-b\" not found"
< metadata = {}
< reason = "NotFound"
< status = "Failure"

= A namespace takes its objects with it
> POST /api/v1/namespaces
| {"metadata": {"name": "$ns-b"}}
? status
< 201
< status.phase = "Active"
> POST /api/v1/namespaces/$ns-b/configmaps
| {"metadata": {"name": "a"}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns-b
? status.phase
< 200
< status.phase = "Terminating"
> GET /api/v1/namespaces/$ns-b
* until 404
? message
< 404 NotFound
< message = "namespaces \"$ns-b\" not found"
> GET /api/v1/namespaces/$ns-b/configmaps/a
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

= A namespace that is being deleted takes nothing new
> POST /api/v1/namespaces
| {"metadata": {"name": "$ns-b"}}
? status
< 201
< status.phase = "Active"
> POST /api/v1/namespaces/$ns-b/configmaps
| {"metadata": {"name": "a", "finalizers": ["x.io/a"]}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /api/v1/namespaces/$ns-b
? status.phase
< 200
< status.phase = "Terminating"
> POST /api/v1/namespaces/$ns-b/configmaps
| {"metadata": {"name": "b"}}
< 403 Forbidden
< apiVersion = "v1"
< code = 403
< details.causes[0].field = "metadata.namespace"
< details.causes[0].message = "namespace $ns-b is being terminated"
< details.causes[0].reason = "NamespaceTerminating"
< details.kind = "configmaps"
< details.name = "b"
< kind = "Status"
< message = "configmaps \"b\" is forbidden: unable to create new content in namespace $ns-b because it is being terminated"
< metadata = {}
< reason = "Forbidden"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns-b/configmaps/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"finalizers": null}}
? metadata.finalizers
< 200
> GET /api/v1/namespaces/$ns-b
* until 404
? message
< 404 NotFound
< message = "namespaces \"$ns-b\" not found"

= A namespace has a name without dots
! 1.20: the text is different in newer servers
> POST /api/v1/namespaces
| {"metadata": {"name": "a.b"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.name"
< details.causes[0].message = "Invalid value: \"a.b\": must not contain dots"
< details.causes[0].reason = "FieldValueInvalid"
< details.kind = "Namespace"
< details.name = "a.b"
< kind = "Status"
< message = "Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not contain dots"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "metadata.name"
<1.20 details.causes[0].message = "Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.kind = "Namespace"
<1.20 details.name = "a.b"
<1.20 kind = "Status"
<1.20 message = "Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"

= A namespace of the system cannot be deleted
> DELETE /api/v1/namespaces/kube-system
< 403 Forbidden
< apiVersion = "v1"
< code = 403
< details.kind = "namespaces"
< details.name = "kube-system"
< kind = "Status"
< message = "namespaces \"kube-system\" is forbidden: this namespace may not be deleted"
< metadata = {}
< reason = "Forbidden"
< status = "Failure"
> DELETE /api/v1/namespaces/default
< 403 Forbidden
< apiVersion = "v1"
< code = 403
< details.kind = "namespaces"
< details.name = "default"
< kind = "Status"
< message = "namespaces \"default\" is forbidden: this namespace may not be deleted"
< metadata = {}
< reason = "Forbidden"
< status = "Failure"
