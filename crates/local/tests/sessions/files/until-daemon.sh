# until-daemon.sh FIELD VALUE: waits until a field of the status of ads-demo has a value.
for _ in $(seq 300); do
  [ "$(kubectl get daemon ads-demo -o jsonpath="{.status.$1}")" = "$2" ] && exit
  sleep 0.1
done
echo "$1 did not become $2" && exit 1
