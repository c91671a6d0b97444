# Custom resources: from the definition to its end.

= A definition is established
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
- status
< 201
< apiVersion = "apiextensions.k8s.io/v1"
< kind = "CustomResourceDefinition"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "things.$ns.example.com"
< metadata.resourceVersion = "v1"
< metadata.uid = "uid1"
< spec.conversion.strategy = "None"
< spec.group = "$ns.example.com"
< spec.names.kind = "Thing"
< spec.names.listKind = "ThingList"
< spec.names.plural = "things"
< spec.names.singular = "thing"
< spec.scope = "Namespaced"
< spec.versions[0].name = "v1"
< spec.versions[0].schema.openAPIV3Schema.type = "object"
< spec.versions[0].served = true
< spec.versions[0].storage = true
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
- metadata.resourceVersion
< 200
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
< spec.versions[0].schema.openAPIV3Schema.type = "object"
< spec.versions[0].served = true
< spec.versions[0].storage = true
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.storedVersions[0] = "v1"
> GET /apis/$ns.example.com
* until 200
< 200
< apiVersion = "v1"
< kind = "APIGroup"
< name = "$ns.example.com"
< preferredVersion.groupVersion = "$ns.example.com/v1"
< preferredVersion.version = "v1"
< versions[0].groupVersion = "$ns.example.com/v1"
< versions[0].version = "v1"
> GET /apis/$ns.example.com/v1
? kind groupVersion resources[0].name resources[0].kind resources[0].namespaced resources[0].verbs
< 200
< groupVersion = "$ns.example.com/v1"
< kind = "APIResourceList"
< resources[0].kind = "Thing"
< resources[0].name = "things"
< resources[0].namespaced = true
< resources[0].verbs[0] = "delete"
< resources[0].verbs[1] = "deletecollection"
< resources[0].verbs[2] = "get"
< resources[0].verbs[3] = "list"
< resources[0].verbs[4] = "patch"
< resources[0].verbs[5] = "create"
< resources[0].verbs[6] = "update"
< resources[0].verbs[7] = "watch"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= Unknown fields of a custom resource are pruned, defaults filled in
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"unknown": 1, "size": 2, "free": {"any": [1]}, "port": "80%", "parts": [{"name": "x", "more": 1}]}, "extra": true}
- metadata.resourceVersion
< 201
< apiVersion = "$ns.example.com/v1"
< kind = "Thing"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.uid = "uid2"
< spec.free.any[0] = 1
< spec.parts[0].name = "x"
< spec.parts[0].on = true
< spec.port = "80%"
< spec.size = 2
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"port": 80}}
? spec
< 201
< spec.port = 80
< spec.size = 3
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= A custom resource is validated
! 1.20: newer servers report types, lengths and list indexes more precisely
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 10}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.size"
< details.causes[0].message = "Invalid value: 10: spec.size in body should be less than or equal to 9"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1, "color": 7}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.color"
< details.causes[0].message = "Invalid value: \"integer\": spec.color in body must be of type string: \"integer\""
< details.causes[0].reason = "FieldValueTypeInvalid"
< details.causes[1].field = "spec.color"
< details.causes[1].message = "Unsupported value: 7: supported values: \"red\", \"blue\""
< details.causes[1].reason = "FieldValueNotSupported"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: [spec.color: Invalid value: \"integer\": spec.color in body must be of type string: \"integer\", spec.color: Unsupported value: 7: supported values: \"red\", \"blue\"]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.color"
<1.20 details.causes[0].message = "Invalid value: \"integer\": spec.color in body must be of type string: \"integer\""
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.causes[1].field = "spec.color"
<1.20 details.causes[1].message = "Unsupported value: 7: supported values: \"red\", \"blue\""
<1.20 details.causes[1].reason = "FieldValueNotSupported"
<1.20 details.group = "$ns.example.com"
<1.20 details.kind = "Thing"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Thing.$ns.example.com \"a\" is invalid: [spec.color: Invalid value: \"integer\": spec.color in body must be of type string: \"integer\", spec.color: Unsupported value: 7: supported values: \"red\", \"blue\"]"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"code": "abcdef"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.code"
< details.causes[0].message = "Too long: may not be more than 5 bytes"
< details.causes[0].reason = "FieldValueTooLong"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.code: Too long: may not be more than 5 bytes"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.code"
<1.20 details.causes[0].message = "Invalid value: \"abcdef\": spec.code in body should be at most 5 chars long"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.group = "$ns.example.com"
<1.20 details.kind = "Thing"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Thing.$ns.example.com \"a\" is invalid: spec.code: Invalid value: \"abcdef\": spec.code in body should be at most 5 chars long"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1, "port": true}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.port"
< details.causes[0].message = "Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\""
< details.causes[0].reason = "FieldValueTypeInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.port"
<1.20 details.causes[0].message = "Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\""
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.group = "$ns.example.com"
<1.20 details.kind = "Thing"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Thing.$ns.example.com \"a\" is invalid: spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\""
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1, "parts": [{"on": true}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.parts[0].name"
< details.causes[0].message = "Required value"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.parts[0].name: Required value"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.parts.name"
<1.20 details.causes[0].message = "Required value"
<1.20 details.causes[0].reason = "FieldValueRequired"
<1.20 details.group = "$ns.example.com"
<1.20 details.kind = "Thing"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Thing.$ns.example.com \"a\" is invalid: spec.parts.name: Required value"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= Keys and items of lists of a custom resource are unique
! 1.20: newer servers report that there are too many
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"tags": ["x", "x"]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.tags[1]"
< details.causes[0].message = "Duplicate value: \"x\""
< details.causes[0].reason = "FieldValueDuplicate"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.tags[1]: Duplicate value: \"x\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"parts": [{"name": "x"}, {"name": "x"}]}}
- message *message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.parts[1]"
< details.causes[0].reason = "FieldValueDuplicate"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.parts"
< details.causes[0].message = "Too many: 4: must have at most 3 items"
< details.causes[0].reason = "FieldValueTooMany"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.parts: Too many: 4: must have at most 3 items"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.parts"
<1.20 details.causes[0].message = "Invalid value: 4: spec.parts in body should have at most 3 items"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.group = "$ns.example.com"
<1.20 details.kind = "Thing"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "Thing.$ns.example.com \"a\" is invalid: spec.parts: Invalid value: 4: spec.parts in body should have at most 3 items"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= A custom resource needs kind and version
! 1.20: the text about a missing kind is different in newer servers
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"metadata":{"name":"a"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in '{\"metadata\":{\"name\":\"a\"}}' ({\"metadata\":{\"name\":\"a\"}})"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
<1.20 400 BadRequest
<1.20 apiVersion = "v1"
<1.20 code = 400
<1.20 kind = "Status"
<1.20 message = "Thing in version \"v1\" cannot be handled as a Thing: unmarshalerDecoder: Object 'Kind' is missing in '{\"metadata\":{\"name\":\"a\"}}', error found in #10 byte of ...|ame\":\"a\"}}|..., bigger context ...|{\"metadata\":{\"name\":\"a\"}}|..."
<1.20 metadata = {}
<1.20 reason = "BadRequest"
<1.20 status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Other", "metadata": {"name": "a"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "kind"
< details.causes[0].message = "Invalid value: \"Other\": must be Thing"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Other"
< details.name = "a"
< kind = "Status"
< message = "Other.$ns.example.com \"a\" is invalid: kind: Invalid value: \"Other\": must be Thing"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v9", "kind": "Thing", "metadata": {"name": "a"}}
< 400 BadRequest
< apiVersion = "v1"
< code = 400
< kind = "Status"
< message = "the API version in the data ($ns.example.com/v9) does not match the expected API version ($ns.example.com/v1)"
< metadata = {}
< reason = "BadRequest"
< status = "Failure"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= The status of a custom resource is written apart
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}, "status": {"replicas": 7}}
? status metadata.generation
< 201
< metadata.generation = 1
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a/status
@ Content-Type: application/merge-patch+json
| {"spec": {"size": 5}, "status": {"replicas": 2, "selector": "x=y"}, "metadata": {"labels": {"l": "m"}}}
? spec.size status metadata.generation metadata.labels
< 200
< metadata.generation = 1
< spec.size = 1
< status.replicas = 2
< status.selector = "x=y"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"size": 5}, "status": {"replicas": 9}}
? spec.size status metadata.generation
< 200
< metadata.generation = 2
< spec.size = 5
< status.replicas = 2
< status.selector = "x=y"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"labels": {"n": "o"}}}
? metadata.generation
< 200
< metadata.generation = 2
> GET /apis/$ns.example.com/v1/namespaces/$ns/things/a/scale
- metadata.resourceVersion
< 200
< apiVersion = "autoscaling/v1"
< kind = "Scale"
< metadata.creationTimestamp = "TIME"
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.uid = "uid2"
< spec.replicas = 5
< status.replicas = 2
< status.selector = "x=y"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a/scale
@ Content-Type: application/merge-patch+json
| {"spec": {"replicas": 6}}
? spec status
< 200
< spec.replicas = 6
< status.replicas = 2
< status.selector = "x=y"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things/a
? spec.size metadata.generation
< 200
< metadata.generation = 3
< spec.size = 6
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a/scale
@ Content-Type: application/merge-patch+json
| {"spec": {"replicas": 60}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.size"
< details.causes[0].message = "Invalid value: 60: spec.size in body should be less than or equal to 9"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.size: Invalid value: 60: spec.size in body should be less than or equal to 9"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= An update of a custom resource needs its version
! 1.20: old servers print this number in hexadecimal
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}}
& rv /metadata/resourceVersion
? metadata.resourceVersion
< 201
< metadata.resourceVersion = "v3"
> PUT /apis/$ns.example.com/v1/namespaces/$ns/things/a
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 2}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.resourceVersion"
< details.causes[0].message = "Invalid value: 0: must be specified for an update"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "things"
< details.name = "a"
< kind = "Status"
< message = "things.$ns.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "metadata.resourceVersion"
<1.20 details.causes[0].message = "Invalid value: 0x0: must be specified for an update"
<1.20 details.causes[0].reason = "FieldValueInvalid"
<1.20 details.group = "$ns.example.com"
<1.20 details.kind = "things"
<1.20 details.name = "a"
<1.20 kind = "Status"
<1.20 message = "things.$ns.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> PUT /apis/$ns.example.com/v1/namespaces/$ns/things/a
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a", "resourceVersion": "$rv"}, "spec": {"size": 2}}
? metadata.generation spec
< 200
< metadata.generation = 2
< spec.size = 2
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= A custom resource takes no strategic patch
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/strategic-merge-patch+json
| {"spec": {"size": 2}}
< 415 UnsupportedMediaType
< apiVersion = "v1"
< code = 415
< kind = "Status"
< message = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
< metadata = {}
< reason = "UnsupportedMediaType"
< status = "Failure"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/json-patch+json
| [{"op": "replace", "path": "/spec/size", "value": 4}]
? spec
< 200
< spec.size = 4
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= A table of custom resources has the columns of the definition
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1, "color": "red"}}
? metadata.name
< 201
< metadata.name = "a"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
@ Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json
- *description *resourceVersion rows[0].cells[3]
< 200
< apiVersion = "meta.k8s.io/v1"
< columnDefinitions[0].format = "name"
< columnDefinitions[0].name = "Name"
< columnDefinitions[0].priority = 0
< columnDefinitions[0].type = "string"
< columnDefinitions[1].format = ""
< columnDefinitions[1].name = "Size"
< columnDefinitions[1].priority = 0
< columnDefinitions[1].type = "integer"
< columnDefinitions[2].format = ""
< columnDefinitions[2].name = "Color"
< columnDefinitions[2].priority = 1
< columnDefinitions[2].type = "string"
< columnDefinitions[3].format = ""
< columnDefinitions[3].name = "Age"
< columnDefinitions[3].priority = 0
< columnDefinitions[3].type = "date"
< kind = "Table"
< rows[0].cells[0] = "a"
< rows[0].cells[1] = 1
< rows[0].cells[2] = "red"
< rows[0].object.apiVersion = "meta.k8s.io/v1"
< rows[0].object.kind = "PartialObjectMetadata"
< rows[0].object.metadata.creationTimestamp = "TIME"
< rows[0].object.metadata.generation = 1
< rows[0].object.metadata.name = "a"
< rows[0].object.metadata.namespace = "$ns"
< rows[0].object.metadata.uid = "uid2"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1
- *resourceVersion
< 200
< apiVersion = "meta.k8s.io/v1"
< kind = "PartialObjectMetadata"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.uid = "uid2"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= A watch of custom resources from before their creation is too old
! embedded: a new resource still has its complete history, so no resource version is too old
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things?watch=1&resourceVersion=1&timeoutSeconds=2
< 200
< event[0].object.apiVersion = "v1"
< event[0].object.code = 410
< event[0].object.kind = "Status"
< event[0].object.message = "too old resource version: N (N)"
< event[0].object.metadata = {}
< event[0].object.reason = "Expired"
< event[0].object.status = "Failure"
< event[0].type = "ERROR"
<embedded 200
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= A watch of custom resources tells what happened
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}}
& rv /metadata/resourceVersion
? metadata
< 201
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v3"
< metadata.uid = "uid2"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"size": 2}}
? metadata
< 200
< metadata.creationTimestamp = "TIME"
< metadata.generation = 2
< metadata.name = "a"
< metadata.namespace = "$ns"
< metadata.resourceVersion = "v4"
< metadata.uid = "uid2"
> DELETE /apis/$ns.example.com/v1/namespaces/$ns/things/a
< 200
< apiVersion = "v1"
< details.group = "$ns.example.com"
< details.kind = "things"
< details.name = "a"
< details.uid = "uid2"
< kind = "Status"
< metadata = {}
< status = "Success"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things?watch=1&resourceVersion=$rv&timeoutSeconds=2
< 200
< event[0].object.apiVersion = "$ns.example.com/v1"
< event[0].object.kind = "Thing"
< event[0].object.metadata.creationTimestamp = "TIME"
< event[0].object.metadata.generation = 2
< event[0].object.metadata.name = "a"
< event[0].object.metadata.namespace = "$ns"
< event[0].object.metadata.resourceVersion = "v4"
< event[0].object.metadata.uid = "uid2"
< event[0].object.spec.size = 2
< event[0].type = "MODIFIED"
< event[1].object.apiVersion = "$ns.example.com/v1"
< event[1].object.kind = "Thing"
< event[1].object.metadata.creationTimestamp = "TIME"
< event[1].object.metadata.generation = 2
< event[1].object.metadata.name = "a"
< event[1].object.metadata.namespace = "$ns"
< event[1].object.metadata.resourceVersion = "v5"
< event[1].object.metadata.uid = "uid2"
< event[1].object.spec.size = 2
< event[1].type = "DELETED"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= Versions without conversion differ in name only
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}}, {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}}
? apiVersion spec
< 201
< apiVersion = "$ns.example.com/v1"
< spec.size = 1
> GET /apis/$ns.example.com/v2/namespaces/$ns/things/a
? apiVersion kind spec
< 200
< apiVersion = "$ns.example.com/v2"
< kind = "Thing"
< spec.size = 1
> PATCH /apis/$ns.example.com/v2/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"size": 2}}
? apiVersion spec
< 200
< apiVersion = "$ns.example.com/v2"
< spec.size = 2
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
? apiVersion items[0].apiVersion items[0].spec
< 200
< apiVersion = "$ns.example.com/v1"
< items[0].apiVersion = "$ns.example.com/v1"
< items[0].spec.size = 2
> GET /apis/$ns.example.com
? versions preferredVersion
< 200
< preferredVersion.groupVersion = "$ns.example.com/v2"
< preferredVersion.version = "v2"
< versions[0].groupVersion = "$ns.example.com/v2"
< versions[0].version = "v2"
< versions[1].groupVersion = "$ns.example.com/v1"
< versions[1].version = "v1"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"

= Custom resources are deleted with their CRD
! embedded: an unknown group is rejected with a Status and not with a line of text; clients print the same for both
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? status
< 200
< status.acceptedNames.kind = "Thing"
< status.acceptedNames.listKind = "ThingList"
< status.acceptedNames.plural = "things"
< status.acceptedNames.singular = "thing"
< status.conditions[0].lastTransitionTime = "TIME"
< status.conditions[0].message = "no conflicts found"
< status.conditions[0].reason = "NoConflicts"
< status.conditions[0].status = "True"
< status.conditions[0].type = "NamesAccepted"
< status.conditions[1].lastTransitionTime = "TIME"
< status.conditions[1].message = "the initial names have been accepted"
< status.conditions[1].reason = "InitialNamesAccepted"
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
< status.conditions[2].lastTransitionTime = "TIME"
< status.conditions[2].message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
< status.conditions[2].reason = "InstanceDeletionPending"
< status.conditions[2].status = "True"
< status.conditions[2].type = "Terminating"
< status.storedVersions[0] = "v1"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until 404
? message
< 404 NotFound
< message = "customresourcedefinitions.apiextensions.k8s.io \"things.$ns.example.com\" not found"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things/a
* until 404
? code
< 404
<embedded 404 NotFound
<embedded code = 404

= An invalid CRD is rejected
! 1.20: newer servers do not say why a schema is required
! embedded: a missing storage version is reported once, not twice
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"metadata": {"name": "wrong.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "metadata.name"
< details.causes[0].message = "Invalid value: \"wrong.$ns.example.com\": must be spec.names.plural+\".\"+spec.group"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "wrong.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"wrong.$ns.example.com\" is invalid: metadata.name: Invalid value: \"wrong.$ns.example.com\": must be spec.names.plural+\".\"+spec.group"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Somewhere", "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.scope"
< details.causes[0].message = "Unsupported value: \"Somewhere\": supported values: \"Cluster\", \"Namespaced\""
< details.causes[0].reason = "FieldValueNotSupported"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.scope: Unsupported value: \"Somewhere\": supported values: \"Cluster\", \"Namespaced\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true, "storage": true}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.versions[0].schema.openAPIV3Schema"
< details.causes[0].message = "Required value"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.versions[0].schema.openAPIV3Schema: Required value"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<1.20 422 Invalid
<1.20 apiVersion = "v1"
<1.20 code = 422
<1.20 details.causes[0].field = "spec.versions[0].schema.openAPIV3Schema"
<1.20 details.causes[0].message = "Required value: schemas are required"
<1.20 details.causes[0].reason = "FieldValueRequired"
<1.20 details.group = "apiextensions.k8s.io"
<1.20 details.kind = "CustomResourceDefinition"
<1.20 details.name = "things.$ns.example.com"
<1.20 kind = "Status"
<1.20 message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"
<1.20 metadata = {}
<1.20 reason = "Invalid"
<1.20 status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
- message *message
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.versions"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "status.storedVersions"
< details.causes[1].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
<embedded 422 Invalid
<embedded apiVersion = "v1"
<embedded code = 422
<embedded details.causes[0].field = "spec.versions"
<embedded details.causes[0].reason = "FieldValueInvalid"
<embedded details.group = "apiextensions.k8s.io"
<embedded details.kind = "CustomResourceDefinition"
<embedded details.name = "things.$ns.example.com"
<embedded kind = "Status"
<embedded metadata = {}
<embedded reason = "Invalid"
<embedded status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"a": {}}}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].properties[a].type"
< details.causes[0].message = "Required value: must not be empty for specified object fields"
< details.causes[0].reason = "FieldValueRequired"
< details.causes[1].field = "spec.validation.openAPIV3Schema.properties[spec].type"
< details.causes[1].message = "Required value: must not be empty for specified object fields"
< details.causes[1].reason = "FieldValueRequired"
< details.causes[2].field = "spec.validation.openAPIV3Schema.type"
< details.causes[2].message = "Required value: must not be empty at the root"
< details.causes[2].reason = "FieldValueRequired"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: [spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields, spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields, spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A CRD that is being deleted accepts no new objects
! 1.20: old servers answer that the method is not allowed
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "color": {"type": "string", "enum": ["red", "blue"]}, "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, "port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "on": {"type": "boolean", "default": true}}}}, "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}, "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}}
? metadata.name
< 201
< metadata.name = "things.$ns.example.com"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until status.conditions[1].status = "True"
? status.conditions[1].type status.conditions[1].status
< 200
< status.conditions[1].status = "True"
< status.conditions[1].type = "Established"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things
* until 200
? kind
< 200
< kind = "ThingList"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a", "finalizers": ["example.com/hold"]}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? kind
< 200
< kind = "CustomResourceDefinition"
> GET /apis/$ns.example.com/v1
* until resources[0].verbs[4] = "watch"
? resources[0]
- *storageVersionHash
< 200
< resources[0].kind = "Thing"
< resources[0].name = "things"
< resources[0].namespaced = true
< resources[0].singularName = "thing"
< resources[0].verbs[0] = "delete"
< resources[0].verbs[1] = "deletecollection"
< resources[0].verbs[2] = "get"
< resources[0].verbs[3] = "list"
< resources[0].verbs[4] = "watch"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}}
< 403 Forbidden
< apiVersion = "v1"
< code = 403
< details.group = "$ns.example.com"
< details.kind = "things"
< details.name = "b"
< kind = "Status"
< message = "things.$ns.example.com \"b\" is forbidden: create not allowed while custom resource definition is terminating"
< metadata = {}
< reason = "Forbidden"
< status = "Failure"
<1.20 405 MethodNotAllowed
<1.20 apiVersion = "v1"
<1.20 code = 405
<1.20 details.group = "$ns.example.com"
<1.20 details.kind = "things"
<1.20 kind = "Status"
<1.20 message = "create not allowed while custom resource definition is terminating"
<1.20 metadata = {}
<1.20 reason = "MethodNotAllowed"
<1.20 status = "Failure"
> GET /apis/$ns.example.com/v1/namespaces/$ns/things/a
? metadata.name
< 200
< metadata.name = "a"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"metadata": {"finalizers": null}}
? metadata.name
< 200
< metadata.name = "a"
> GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
* until 404
? reason
< 404 NotFound
< reason = "NotFound"
