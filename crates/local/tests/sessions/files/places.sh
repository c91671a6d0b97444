# places.sh: the subset of each pod of cs-demo that is not being deleted, its node and its deletion cost, when they have
# stayed the same for a second.
look() {
  kubectl get pods -l app=cs-demo -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{index .metadata.annotations "apps.kruise.io/matched-workloadspread"}} {{.spec.nodeName}} {{index .metadata.annotations "controller.kubernetes.io/pod-deletion-cost"}}{{"\n"}}{{end}}{{end}}' | sort
}
same=0
for _ in $(seq 100); do
  now=$(look)
  if [ "$now" = "$before" ]; then same=$((same + 1)); else same=0; fi
  [ $same = 10 ] && break
  before=$now
  sleep 0.1
done
echo "$now"
