# until-asts.sh FIELD VALUE: waits until a field of the status of asts-demo has a value.
for _ in $(seq 150); do
  [ "$(kubectl get asts asts-demo -o jsonpath="{.status.$1}")" = "$2" ] && exit
  sleep 0.1
done
echo "$1 did not become $2" && exit 1
