# until-path.sh OBJECT JSONPATH VALUE: waits until a field of an object, such as clone/cs-demo, has a value.
for _ in $(seq 150); do
  [ "$(kubectl get "$1" -o jsonpath="{$2}")" = "$3" ] && exit
  sleep 0.1
done
echo "$2 of $1 is $(kubectl get "$1" -o jsonpath="{$2}"), not $3" && exit 1
