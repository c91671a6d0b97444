# Waits until figures of a number of nodes or pods are there: until-top.sh pods 2
tries=0
until [ "$(kubectl top "$1" --no-headers 2> /dev/null | wc -l)" = "$2" ]; do
  tries=$((tries + 1))
  [ $tries -lt 60 ] || exit 1
  sleep 0.5
done
