# Forwards a free port of this machine to a port of a pod, and asks there for a page: forward.sh POD PORT
: > forwarded
kubectl port-forward "$1" ":$2" > forwarded 2> problems &
until grep -q '^Forwarding from 127' forwarded; do sleep 0.1; done
port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' forwarded)
kubectl --kubeconfig=/dev/null --server="http://127.0.0.1:$port" get --raw / 2> /dev/null && echo
sleep 0.5
kill $! 2> /dev/null
grep '127.0.0.1\|Handling' forwarded | sed "s/for $port/for <port>/" | uniq
sed "s/.*an error occurred/an error occurred/; s/forwarding $port/forwarding <port>/; s/\\\\\"/\"/g; s/\"\$//" problems | grep -v 'lost connection'
exit 0
