#!/usr/bin/env bash
# two_hosts.sh NAME PROGRAM ARGUMENT…: starts two ranks with the variables that torchrun sets, each on a
# network of its own (NAME-0, NAME-1), which a cable joins that both call `cable`. Ends with 77 where
# nobody may make networks, else with the first exit code that is not 0. Both ranks have one secret,
# or what the variables say that are set.
set -u
name=$1
shift
remove() {
  ip netns delete "$name-0"
  ip netns delete "$name-1"
} 2>/dev/null
make() {
  ip netns add "$name-0" && ip netns add "$name-1" || return
  ip -n "$name-0" link add cable type veth peer name cable netns "$name-1" || return
  for rank in 0 1; do
    ip -n "$name-$rank" address add "10.77.0.$((rank + 1))/24" dev cable || return
    ip -n "$name-$rank" link set lo up && ip -n "$name-$rank" link set cable up || return
  done
} 2>/dev/null
trap remove EXIT
make || exit 77
export WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=$name
[ -n "${SHARDWISE_INSECURE+set}" ] || export SHARDWISE_SECRET="the secret of $name"
processes=()
for rank in 0 1; do
  RANK=$rank LOCAL_RANK=0 ip netns exec "$name-$rank" "$@" &
  processes+=($!)
done
code=0
for process in "${processes[@]}"; do
  wait "$process"
  ended=$?
  ((code != 0)) || code=$ended
done
exit "$code"
