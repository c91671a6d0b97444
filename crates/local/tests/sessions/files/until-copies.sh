# Waits until there are so many ConfigMaps of this name.
for _ in $(seq 300); do
  [ "$(kubectl get configmaps -A --field-selector metadata.name=proxy-settings -o name | wc -l)" = "$1" ] && exit
  sleep 0.1
done
