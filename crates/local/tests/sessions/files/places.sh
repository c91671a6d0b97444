# places.sh: the subset of each pod of cs-demo, its node and its deletion cost.
sleep 0.5
mark='{.metadata.annotations.apps\.kruise\.io/matched-workloadspread}'
cost='{.metadata.annotations.controller\.kubernetes\.io/pod-deletion-cost}'
kubectl get pods -l app=cs-demo -o jsonpath="{range .items[*]}$mark {.spec.nodeName} $cost{'\n'}{end}" | sort
