# subsets.sh: the subset of each pod of ud-demo that is not being deleted, its node and its image.
kubectl get pods -l app=ud-demo -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{index .metadata.labels "apps.kruise.io/subset-name"}} {{.spec.nodeName}} {{(index .spec.containers 0).image}}{{"\n"}}{{end}}{{end}}' | sort
