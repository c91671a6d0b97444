# until-pub.sh NAME FIELD VALUE: waits until a field of the status of a PodUnavailableBudget, for its newest generation, has a value.
for _ in $(seq 300); do
  set -- "$1" "$2" "$3" $(kubectl get pub "$1" -o jsonpath="{.metadata.generation} {.status.observedGeneration} {.status.$2}")
  [ "$4" = "$5" ] && [ "$6" = "$3" ] && exit
  sleep 0.1
done
echo "$2 did not become $3" && exit 1
