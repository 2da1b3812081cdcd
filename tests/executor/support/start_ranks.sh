#!/usr/bin/env bash
# start_ranks.sh RANKS PROGRAM ARGUMENT…: starts so many processes with the variables that torchrun
# sets, and ends with the first exit code that is not 0. Processes that have found one another end
# one another; those that have not are ended by the launcher, seven seconds after the first one ended.
set -u
ranks=$1
shift
export WORLD_SIZE=$ranks MASTER_ADDR=localhost MASTER_PORT=$((10000 + RANDOM % 10000)) TORCHELASTIC_RUN_ID=$$
processes=()
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank "$@" &
  processes+=($!)
done
missing_since=
while :; do
  alive=()
  for process in "${processes[@]}"; do
    ! kill -0 "$process" 2>/dev/null || alive+=("$process")
  done
  [ ${#alive[@]} -gt 0 ] || break
  [ ${#alive[@]} -eq "$ranks" ] || missing_since=${missing_since:-$SECONDS}
  [ -z "$missing_since" ] || ((SECONDS - missing_since < 7)) || kill -KILL "${alive[@]}" 2>/dev/null
  sleep 0.05
done
code=0
for process in "${processes[@]}"; do
  wait "$process"
  ended=$?
  ((code != 0)) || code=$ended
done
exit "$code"
