#!/usr/bin/env bash
# From a bare Debian 12 to the best layouts of Llama-3.1-70B on 64 H100, and to a small Llama that
# is planned, simulated and trained for real on this machine: installs what is missing, builds in
# build/release. Needs no GPU. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

need_packages "${packages_build[@]}"
say "configuring build/release"
cmake --preset release -D BUILD_TESTING=OFF
say "building shardwise and shardwise-run with $(nproc) cores"
cmake --build --preset release --target shardwise shardwise-run --parallel "$(nproc)"

plan=(plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 -o plan.json)
say "build/release/bin/shardwise ${plan[*]}"
build/release/bin/shardwise "${plan[@]}"

# The same small model on four ranks of this machine under every ZeRO stage: what the planner says
# it holds and takes, and what it held and took.
say "planning, simulating and running llama-tiny on 4 ranks, 20 steps each"
out=build/quickstart
mkdir -p "$out"
for stage in 0 1 2 3; do
  tiny=(plan --model llama-tiny --cluster laptop --gpus 4 --engine shardwise --precision fp32
    --loss chunked --sequence-length 128 --global-batch-size 4 --lock "zero_stage=$stage"
    --lock dp_shard=4 -o "$out/plan$stage.json")
  build/release/bin/shardwise "${tiny[@]}" >/dev/null
  build/release/bin/shardwise simulate "$out/plan$stage.json" -o "$out/predicted$stage.json" >/dev/null
  say "ZeRO-$stage"
  build/release/bin/shardwise run "$out/plan$stage.json" --steps 20 --learning-rate 0.001 \
    --report "$out/measured$stage.json" | sed -n '$p'
  build/release/bin/shardwise compare "$out/predicted$stage.json" "$out/measured$stage.json" |
    sed -n '1,3p'
done
say "next, one layout in detail: build/release/bin/shardwise estimate --model llama-3.1-8b" \
    "--cluster dgx-h100 --engine fsdp2 --zero-stage 3 --explain"
