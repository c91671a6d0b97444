# subsets.sh: the subset of each pod of ud-demo, its node and its image.
kubectl get pods -l app=ud-demo -o jsonpath='{range .items[*]}{.metadata.labels.apps\.kruise\.io/subset-name} {.spec.nodeName} {.spec.containers[0].image}{"\n"}{end}' | sort
