# Expressions: rules of definitions, conditions of webhooks, policies.

= CEL rules of a CRD are validated with it
! from 1.35: old servers have no CEL rules, and later ones have other messages
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.mn <= self.max", "message": "order"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
< details.causes[0].message = "Invalid value: {\"Rule\":\"self.mn \\u003c= self.max\",\"Message\":\"order\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'mn'\n | self.mn <= self.max\n | ....^"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.mn \\u003c= self.max\",\"Message\":\"order\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'mn'\n | self.mn <= self.max\n | ....^"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.min + 1"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
< details.causes[0].message = "Invalid value: {\"Rule\":\"self.min + 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel expression must evaluate to a bool"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.min + 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel expression must evaluate to a bool"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "slf.min == 1"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
< details.causes[0].message = "Invalid value: {\"Rule\":\"slf.min == 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'slf' (in container '')\n | slf.min == 1\n | ^"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"slf.min == 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'slf' (in container '')\n | slf.min == 1\n | ^"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.min == 'one'"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
< details.causes[0].message = "Invalid value: {\"Rule\":\"self.min == 'one'\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:10: found no matching overload for '_==_' applied to '(int, string)'\n | self.min == 'one'\n | .........^"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.min == 'one'\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:10: found no matching overload for '_==_' applied to '(int, string)'\n | self.min == 'one'\n | .........^"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.min <= self.max", "messageExpression": "self.min"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression"
< details.causes[0].message = "Invalid value: {\"Rule\":\"self.min \\u003c= self.max\",\"Message\":\"\",\"MessageExpression\":\"self.min\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: messageExpression must evaluate to a string"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression: Invalid value: {\"Rule\":\"self.min \\u003c= self.max\",\"Message\":\"\",\"MessageExpression\":\"self.min\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: messageExpression must evaluate to a string"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.min <= self.max", "fieldPath": ".other"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath"
< details.causes[0].message = "Invalid value: \".other\": must be a valid path"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: \".other\": must be a valid path"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.min <= self.max", "optionalOldSelf": true}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].optionalOldSelf"
< details.causes[0].message = "Invalid value: true: may not be set if oldSelf is not used in rule"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.min <= self.max", "reason": "Unknown"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].reason"
< details.causes[0].message = "Unsupported value: \"Unknown\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
< details.causes[0].reason = "FieldValueNotSupported"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].reason: Unsupported value: \"Unknown\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": " "}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
< details.causes[0].message = "Required value: rule is not specified"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.min <=\nself.max"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].message"
< details.causes[0].message = "Required value: message must be specified if rule contains line breaks"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"list": {"type": "array", "maxItems": 3, "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}}}, "x-kubernetes-validations": []}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].properties[list].items.x-kubernetes-validations[0].rule"
< details.causes[0].message = "Invalid value: \"self >= oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[list]"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[list].items.x-kubernetes-validations[0].rule: Invalid value: \"self >= oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[list]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer", "default": 0, "x-kubernetes-validations": [{"rule": "self > 0"}]}}, "x-kubernetes-validations": []}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].properties[n].default"
< details.causes[0].message = "Invalid value: 0: failed rule: self > 0"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[n].default: Invalid value: 0: failed rule: self > 0"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}, "x-kubernetes-validations": [{"rule": "self.words.all(a, self.words.all(b, a == b))"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
< details.causes[0].message = "Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
< details.causes[0].reason = "FieldValueForbidden"
< details.causes[1].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
< details.causes[1].message = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
< details.causes[1].reason = "FieldValueForbidden"
< details.causes[2].field = "spec.validation.openAPIV3Schema"
< details.causes[2].message = "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
< details.causes[2].reason = "FieldValueForbidden"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: [spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared), spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema, spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= Custom resources must satisfy the CEL rules of their CRD
! from 1.35: old servers have no CEL rules, and later ones have other messages
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}, "name": {"type": "string", "maxLength": 20}, "port": {"x-kubernetes-int-or-string": true}, "list": {"type": "array", "maxItems": 5, "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 1", "message": "odd ones only"}]}}}, "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "min is at most max"}, {"rule": "!has(self.name) || self.name.startsWith('a')", "reason": "FieldValueForbidden", "fieldPath": ".name", "message": "begins with a"}, {"rule": "!has(self.max) || self.max < 100", "messageExpression": "'max of ' + self.name + ' is too much'", "fieldPath": ".max"}, {"rule": "!has(self.list) || self.list[0] == 1"}, {"rule": "!has(oldSelf.min) || self.min >= oldSelf.min", "message": "min only grows"}]}}}}}]}}
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
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"min": 1, "max": 2}}
? spec
< 201
< spec.max = 2
< spec.min = 1
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"min": 3, "max": 2}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec"
< details.causes[0].message = "Invalid value: min is at most max"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: spec: Invalid value: min is at most max"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"min": 1, "max": 2, "name": "b"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.name"
< details.causes[0].message = "Forbidden: begins with a"
< details.causes[0].reason = "FieldValueForbidden"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: spec.name: Forbidden: begins with a"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"min": 1, "max": 100, "name": "aa"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.max"
< details.causes[0].message = "Invalid value: max of aa is too much"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: spec.max: Invalid value: max of aa is too much"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"min": 1, "max": 2, "list": [1, 2]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.list[1]"
< details.causes[0].message = "Invalid value: 2: odd ones only"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: spec.list[1]: Invalid value: 2: odd ones only"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"min": 1, "max": 2, "list": []}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec"
< details.causes[0].message = "Invalid value: \"object\": index out of bounds: 0 evaluating rule: !has(self.list) || self.list[0] == 1"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: spec: Invalid value: \"object\": index out of bounds: 0 evaluating rule: !has(self.list) || self.list[0] == 1"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"max": 2}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec"
< details.causes[0].message = "Invalid value: \"object\": no such key: min evaluating rule: min is at most max"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: spec: Invalid value: \"object\": no such key: min evaluating rule: min is at most max"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"min": "x", "max": 2}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.min"
< details.causes[0].message = "Invalid value: \"string\": spec.min in body must be of type integer: \"string\""
< details.causes[0].reason = "FieldValueTypeInvalid"
< details.causes[1].field = "<nil>"
< details.causes[1].message = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
< details.causes[1].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: [spec.min: Invalid value: \"string\": spec.min in body must be of type integer: \"string\", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"min": 0}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec"
< details.causes[0].message = "Invalid value: min only grows"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec: Invalid value: min only grows"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"min": 2}}
? spec
< 200
< spec.max = 2
< spec.min = 2
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? metadata.name
< 200
< metadata.name = "things.$ns.example.com"

= A CRD with a message expression that may cost too much is rejected
! from 1.35: old servers have no CEL rules, and later ones have other messages
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"max": {"type": "integer"}, "port": {"type": "string", "x-kubernetes-int-or-string": true}}, "x-kubernetes-validations": [{"rule": "self.max < 100", "messageExpression": "'max is ' + string(self.max)"}]}}}}}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression"
< details.causes[0].message = "Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
< details.causes[0].reason = "FieldValueForbidden"
< details.causes[1].field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression"
< details.causes[1].message = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
< details.causes[1].reason = "FieldValueForbidden"
< details.causes[2].field = "spec.validation.openAPIV3Schema"
< details.causes[2].message = "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
< details.causes[2].reason = "FieldValueForbidden"
< details.group = "apiextensions.k8s.io"
< details.kind = "CustomResourceDefinition"
< details.name = "things.$ns.example.com"
< kind = "Status"
< message = "CustomResourceDefinition.apiextensions.k8s.io \"things.$ns.example.com\" is invalid: [spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared), spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema, spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A stricter rule does not reject unchanged fields
! from 1.35: old servers have no CEL rules, and later ones have other messages
> POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
| {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.$ns.example.com"}, "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things", "singular": "thing"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self <= 10"}]}, "code": {"type": "string", "maxLength": 10}, "other": {"type": "integer"}}}}}}}]}}
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
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 7, "code": "abcdef", "other": 1}}
? spec
< 201
< spec.code = "abcdef"
< spec.other = 1
< spec.size = 7
> PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
@ Content-Type: application/merge-patch+json
| {"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self <= 5"}]}, "code": {"type": "string", "maxLength": 3}, "other": {"type": "integer"}}}}}}}]}}
? metadata.name
< 200
< metadata.name = "things.$ns.example.com"
> POST /apis/$ns.example.com/v1/namespaces/$ns/things?dryRun=All
| {"apiVersion": "$ns.example.com/v1", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"size": 7}}
* until 422 Invalid
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.size"
< details.causes[0].message = "Invalid value: 7: failed rule: self <= 5"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "b"
< kind = "Status"
< message = "Thing.$ns.example.com \"b\" is invalid: spec.size: Invalid value: 7: failed rule: self <= 5"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"other": 2}}
? spec
% warning
< 200
< spec.code = "abcdef"
< spec.other = 2
< spec.size = 7
< warning: 299 - "spec.size: Invalid value: 7: failed rule: self <= 5"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"size": 8}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.size"
< details.causes[0].message = "Invalid value: 8: failed rule: self <= 5"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: spec.size: Invalid value: 8: failed rule: self <= 5"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"code": "abcdeg"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.code"
< details.causes[0].message = "Too long: may not be more than 3 bytes"
< details.causes[0].reason = "FieldValueTooLong"
< details.causes[1].field = "<nil>"
< details.causes[1].message = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
< details.causes[1].reason = "FieldValueInvalid"
< details.group = "$ns.example.com"
< details.kind = "Thing"
< details.name = "a"
< kind = "Status"
< message = "Thing.$ns.example.com \"a\" is invalid: [spec.code: Too long: may not be more than 3 bytes, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /apis/$ns.example.com/v1/namespaces/$ns/things/a
@ Content-Type: application/merge-patch+json
| {"spec": {"size": 5, "code": "abc"}}
? spec
< 200
< spec.code = "abc"
< spec.other = 2
< spec.size = 5
> DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.$ns.example.com
? metadata.name
< 200
< metadata.name = "things.$ns.example.com"

= Match conditions of webhooks are validated
! from 1.30: old servers have no match conditions of webhooks
> POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "$ns"}, "webhooks": [{"name": "hook.$ns.example.com", "clientConfig": {"url": "https://127.0.0.1:1/nobody"}, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1, "matchConditions": [{"name": "a", "expression": "object.metadata.name"}]}]}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "webhooks[0].matchConditions[0].expression"
< details.causes[0].message = "Invalid value: \"object.metadata.name\": must evaluate to bool but got dyn"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingWebhookConfiguration"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"$ns\" is invalid: webhooks[0].matchConditions[0].expression: Invalid value: \"object.metadata.name\": must evaluate to bool but got dyn"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "$ns"}, "webhooks": [{"name": "hook.$ns.example.com", "clientConfig": {"url": "https://127.0.0.1:1/nobody"}, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1, "matchConditions": [{"name": "a", "expression": "request.nam == ''"}]}]}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "webhooks[0].matchConditions[0].expression"
< details.causes[0].message = "Invalid value: \"request.nam == ''\": compilation failed: ERROR: <input>:1:8: undefined field 'nam'\n | request.nam == ''\n | .......^"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingWebhookConfiguration"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"$ns\" is invalid: webhooks[0].matchConditions[0].expression: Invalid value: \"request.nam == ''\": compilation failed: ERROR: <input>:1:8: undefined field 'nam'\n | request.nam == ''\n | .......^"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "$ns"}, "webhooks": [{"name": "hook.$ns.example.com", "clientConfig": {"url": "https://127.0.0.1:1/nobody"}, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1, "matchConditions": [{"name": "a", "expression": ""}, {"name": "", "expression": "true"}]}]}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "webhooks[0].matchConditions[0].expression"
< details.causes[0].message = "Required value"
< details.causes[0].reason = "FieldValueRequired"
< details.causes[1].field = "webhooks[0].matchConditions[1].name"
< details.causes[1].message = "Required value"
< details.causes[1].reason = "FieldValueRequired"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingWebhookConfiguration"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"$ns\" is invalid: [webhooks[0].matchConditions[0].expression: Required value, webhooks[0].matchConditions[1].name: Required value]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "$ns"}, "webhooks": [{"name": "hook.$ns.example.com", "clientConfig": {"url": "https://127.0.0.1:1/nobody"}, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1, "matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]}]}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "webhooks[0].matchConditions[1].name"
< details.causes[0].message = "Duplicate value: \"a\""
< details.causes[0].reason = "FieldValueDuplicate"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingWebhookConfiguration"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"$ns\" is invalid: webhooks[0].matchConditions[1].name: Duplicate value: \"a\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "$ns"}, "webhooks": [{"name": "hook.$ns.example.com", "clientConfig": {"url": "https://127.0.0.1:1/nobody"}, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1, "matchConditions": [{"name": "bad name", "expression": "true"}]}]}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "webhooks[0].matchConditions[0].name"
< details.causes[0].message = "Invalid value: \"bad name\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingWebhookConfiguration"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"$ns\" is invalid: webhooks[0].matchConditions[0].name: Invalid value: \"bad name\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
< metadata = {}
< reason = "Invalid"
< status = "Failure"

= A webhook is called only if its match conditions are true
! from 1.30: old servers have no match conditions of webhooks
> POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "$ns"}, "webhooks": [{"name": "hook.$ns.example.com", "clientConfig": {"url": "https://127.0.0.1:1/nobody"}, "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}, "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1, "matchConditions": [{"name": "not-plain", "expression": "object.metadata.name != 'plain'"}, {"name": "level", "expression": "object.data.level == 'high'"}]}]}
? webhooks[0].matchConditions webhooks[0].failurePolicy
< 201
< webhooks[0].failurePolicy = "Fail"
< webhooks[0].matchConditions[0].expression = "object.metadata.name != 'plain'"
< webhooks[0].matchConditions[0].name = "not-plain"
< webhooks[0].matchConditions[1].expression = "object.data.level == 'high'"
< webhooks[0].matchConditions[1].name = "level"
> POST /api/v1/namespaces/$ns/configmaps?dryRun=All
| {"metadata": {"name": "odd"}}
* until 403
< 403 Forbidden
< apiVersion = "v1"
< code = 403
< details.kind = "configmaps"
< details.name = "odd"
< kind = "Status"
< message = "configmaps \"odd\" is forbidden: expression 'object.data.level == 'high'' resulted in error: no such key: data"
< metadata = {}
< reason = "Forbidden"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "plain"}}
? metadata.name
< 201
< metadata.name = "plain"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "low"}, "data": {"level": "low"}}
? metadata.name
< 201
< metadata.name = "low"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/$ns
? status
< 200
< status = "Success"

= A ValidatingAdmissionPolicy is defaulted and validated
! from 1.30: old servers have no ValidatingAdmissionPolicies
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "true"}]}}
- status metadata.resourceVersion
< 201
< apiVersion = "admissionregistration.k8s.io/v1"
< kind = "ValidatingAdmissionPolicy"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "$ns"
< metadata.uid = "uid1"
< spec.failurePolicy = "Fail"
< spec.matchConstraints.matchPolicy = "Equivalent"
< spec.matchConstraints.namespaceSelector = {}
< spec.matchConstraints.objectSelector = {}
< spec.matchConstraints.resourceRules[0].apiGroups[0] = ""
< spec.matchConstraints.resourceRules[0].apiVersions[0] = "v1"
< spec.matchConstraints.resourceRules[0].operations[0] = "CREATE"
< spec.matchConstraints.resourceRules[0].operations[1] = "UPDATE"
< spec.matchConstraints.resourceRules[0].resources[0] = "configmaps"
< spec.matchConstraints.resourceRules[0].scope = "*"
< spec.validations[0].expression = "true"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validations"
< details.causes[0].message = "Required value: validations or auditAnnotations must contain at least one item"
< details.causes[0].reason = "FieldValueRequired"
< details.causes[1].field = "spec.auditAnnotations"
< details.causes[1].message = "Required value: validations or auditAnnotations must contain at least one item"
< details.causes[1].reason = "FieldValueRequired"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: [spec.validations: Required value: validations or auditAnnotations must contain at least one item, spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "object.x"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validations[0].expression"
< details.causes[0].message = "Invalid value: \"object.x\": must evaluate to bool but got dyn"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: spec.validations[0].expression: Invalid value: \"object.x\": must evaluate to bool but got dyn"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "request.name"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validations[0].expression"
< details.causes[0].message = "Invalid value: \"request.name\": must evaluate to bool but got string"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: spec.validations[0].expression: Invalid value: \"request.name\": must evaluate to bool but got string"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "params.x == 1"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validations[0].expression"
< details.causes[0].message = "Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: spec.validations[0].expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "true", "message": " ", "reason": "Teapot"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validations[0].message"
< details.causes[0].message = "Invalid value: \" \": must be non-empty if specified"
< details.causes[0].reason = "FieldValueInvalid"
< details.causes[1].field = "spec.validations[0].reason"
< details.causes[1].message = "Unsupported value: \"Teapot\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\""
< details.causes[1].reason = "FieldValueNotSupported"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: [spec.validations[0].message: Invalid value: \" \": must be non-empty if specified, spec.validations[0].reason: Unsupported value: \"Teapot\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "variables": [{"name": "in", "expression": "1"}], "validations": [{"expression": "true"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.variables[0].name"
< details.causes[0].message = "Invalid value: \"in\": must be a valid CEL identifier"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: spec.variables[0].name: Invalid value: \"in\": must be a valid CEL identifier"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "variables": [{"name": "a", "expression": "size(request.name)"}], "validations": [{"expression": "variables.a == 'x'"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validations[0].expression"
< details.causes[0].message = "Invalid value: \"variables.a == 'x'\": compilation failed: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'\n | variables.a == 'x'\n | ............^"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: spec.validations[0].expression: Invalid value: \"variables.a == 'x'\": compilation failed: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'\n | variables.a == 'x'\n | ............^"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {}, "validations": [{"expression": "true"}]}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.matchConstraints.resourceRules"
< details.causes[0].message = "Required value"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: spec.matchConstraints.resourceRules: Required value"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "true"}], "failurePolicy": "Maybe"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.failurePolicy"
< details.causes[0].message = "Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\""
< details.causes[0].reason = "FieldValueNotSupported"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicy"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"$ns\" is invalid: spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.policyName"
< details.causes[0].message = "Required value"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicyBinding"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"$ns\" is invalid: spec.policyName: Required value"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": [], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validationActions"
< details.causes[0].message = "Required value: at least one validation action is required"
< details.causes[0].reason = "FieldValueRequired"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicyBinding"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"$ns\" is invalid: spec.validationActions: Required value: at least one validation action is required"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": ["Deny", "Warn"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validationActions"
< details.causes[0].message = "Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"
< details.causes[0].reason = "FieldValueInvalid"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicyBinding"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"$ns\" is invalid: spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": ["Deny", "Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.validationActions[1]"
< details.causes[0].message = "Duplicate value: \"Deny\""
< details.causes[0].reason = "FieldValueDuplicate"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicyBinding"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"$ns\" is invalid: spec.validationActions[1]: Duplicate value: \"Deny\""
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}, "paramRef": {}}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].field = "spec.paramRef"
< details.causes[0].message = "Required value: one of name or selector must be specified"
< details.causes[0].reason = "FieldValueRequired"
< details.causes[1].field = "spec.paramRef.parameterNotFoundAction"
< details.causes[1].message = "Required value"
< details.causes[1].reason = "FieldValueRequired"
< details.group = "admissionregistration.k8s.io"
< details.kind = "ValidatingAdmissionPolicyBinding"
< details.name = "$ns"
< kind = "Status"
< message = "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"$ns\" is invalid: [spec.paramRef: Required value: one of name or selector must be specified, spec.paramRef.parameterNotFoundAction: Required value]"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}}}
- metadata.resourceVersion
< 201
< apiVersion = "admissionregistration.k8s.io/v1"
< kind = "ValidatingAdmissionPolicyBinding"
< metadata.creationTimestamp = "TIME"
< metadata.generation = 1
< metadata.name = "$ns"
< metadata.uid = "uid2"
< spec.matchResources.matchPolicy = "Equivalent"
< spec.matchResources.namespaceSelector.matchLabels["kubernetes.io/metadata.name"] = "$ns"
< spec.matchResources.objectSelector = {}
< spec.policyName = "$ns"
< spec.validationActions[0] = "Deny"

= A ValidatingAdmissionPolicy rejects what violates it
! from 1.30: old servers have no ValidatingAdmissionPolicies
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "variables": [{"name": "keys", "expression": "has(object.data) ? object.data.map(k, k) : []"}], "matchConditions": [{"name": "not-free", "expression": "object.metadata.name != 'free'"}], "validations": [{"expression": "size(variables.keys) <= 2", "messageExpression": "'too many keys in ' + namespaceObject.metadata.name", "reason": "Forbidden"}, {"expression": "!('secret' in variables.keys)", "message": "no secrets"}, {"expression": "request.operation == 'CREATE' || object.data.a == oldObject.data.a"}]}}
? metadata.name
< 201
< metadata.name = "$ns"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}}}
? metadata.name
< 201
< metadata.name = "$ns"
> POST /api/v1/namespaces/$ns/configmaps?dryRun=All
| {"metadata": {"name": "a"}, "data": {"a": "", "b": "", "c": ""}}
* until 403
< 403 Forbidden
< apiVersion = "v1"
< code = 403
< details.causes[0].message = "ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: too many keys in $ns"
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: too many keys in $ns"
< metadata = {}
< reason = "Forbidden"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"secret": ""}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].message = "ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: no secrets"
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: no secrets"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "free"}, "data": {"secret": ""}}
? metadata.name
< 201
< metadata.name = "free"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"a": "1"}}
? metadata.name
< 201
< metadata.name = "a"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": {"a": "2"}}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].message = "ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: failed expression: request.operation == 'CREATE' || object.data.a == oldObject.data.a"
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: failed expression: request.operation == 'CREATE' || object.data.a == oldObject.data.a"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": null}
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].message = "ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: expression 'request.operation == 'CREATE' || object.data.a == oldObject.data.a' resulted in error: no such key: data"
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: expression 'request.operation == 'CREATE' || object.data.a == oldObject.data.a' resulted in error: no such key: data"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> PATCH /api/v1/namespaces/$ns/configmaps/a
@ Content-Type: application/merge-patch+json
| {"data": {"b": "2"}}
? data
< 200
< data.a = "1"
< data.b = "2"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/$ns
? status
< 200
< status = "Success"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/$ns
? status
< 200
< status = "Success"

= A policy binding may warn instead
! from 1.30: old servers have no ValidatingAdmissionPolicies
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "validations": [{"expression": "!has(object.data)", "message": "no data"}]}}
? metadata.name
< 201
< metadata.name = "$ns"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns-warn"}, "spec": {"policyName": "$ns", "validationActions": ["Warn"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}}}
? metadata.name
# This one tells when both count.
< 201
< metadata.name = "$ns-warn"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}, "objectSelector": {"matchLabels": {"probe": "yes"}}}}}
? metadata.name
< 201
< metadata.name = "$ns"
> POST /api/v1/namespaces/$ns/configmaps?dryRun=All
| {"metadata": {"name": "a", "labels": {"probe": "yes"}}, "data": {"a": ""}}
* until 422
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].message = "ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: no data"
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: no data"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps?dryRun=All
| {"metadata": {"name": "a"}, "data": {"a": ""}}
? metadata.name
% warning
< 201
< metadata.name = "a"
< warning: 299 - "Validation failed for ValidatingAdmissionPolicy '$ns' with binding '$ns-warn': no data"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/$ns-warn
? status
< 200
< status = "Success"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/$ns
? status
< 200
< status = "Success"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/$ns
? status
< 200
< status = "Success"

= Parameters of a policy come from an object
! from 1.30: old servers have no ValidatingAdmissionPolicies
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "limits"}, "data": {"most": "1"}}
? data
< 201
< data.most = "1"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "$ns"}, "spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "!has(object.data) || size(object.data) <= int(params.data.most)"}]}}
? spec.paramKind
< 201
< spec.paramKind.apiVersion = "v1"
< spec.paramKind.kind = "ConfigMap"
> POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings
| {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "$ns"}, "spec": {"policyName": "$ns", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}}, "paramRef": {"name": "limits", "namespace": "$ns", "parameterNotFoundAction": "Deny"}}}
? spec.paramRef
< 201
< spec.paramRef.name = "limits"
< spec.paramRef.namespace = "$ns"
< spec.paramRef.parameterNotFoundAction = "Deny"
> POST /api/v1/namespaces/$ns/configmaps?dryRun=All
| {"metadata": {"name": "a"}, "data": {"a": "", "b": ""}}
* until 422
< 422 Invalid
< apiVersion = "v1"
< code = 422
< details.causes[0].message = "ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: failed expression: !has(object.data) || size(object.data) <= int(params.data.most)"
< details.kind = "configmaps"
< details.name = "a"
< kind = "Status"
< message = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '$ns' with binding '$ns' denied request: failed expression: !has(object.data) || size(object.data) <= int(params.data.most)"
< metadata = {}
< reason = "Invalid"
< status = "Failure"
> POST /api/v1/namespaces/$ns/configmaps
| {"metadata": {"name": "a"}, "data": {"a": ""}}
? metadata.name
< 201
< metadata.name = "a"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/$ns
? status
< 200
< status = "Success"
> DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/$ns
? status
< 200
< status = "Success"
