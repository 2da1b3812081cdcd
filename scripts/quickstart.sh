#!/usr/bin/env bash
# From a bare Debian 12 to the best layouts of Llama-3.1-70B on 64 H100, and to a small Llama that
# is planned, simulated and trained for real on this machine: installs what is missing, builds in
# build/release: the command first, then the executor, then the viewer. Needs no GPU. Safe to run
# again. SHARDWISE_PRESET=dev takes the programs of build/dev. Exit codes: 0 done, 3 something is missing
# (one line says what to do), else a failure to build or to run.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh
preset=${SHARDWISE_PRESET:-release}
bin=build/$preset/bin

need_packages "${packages_build[@]}" "${packages_gui[@]}" python3
need_build_folder "build/$preset" 2
fetch_imgui
begun=$SECONDS
configure "$preset" -D BUILD_TESTING=OFF

build_program() {
  say "building $1 with $(nproc) cores"
  build "$preset" --target "$1"
}

build_program shardwise
plan=(plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 -o plan.json)
say "$bin/shardwise ${plan[*]}"
"$bin/shardwise" "${plan[@]}"
say "the plan after $SECONDS s, $begun of them for packages; the executor is next"

build_program shardwise-run
# The same small model on four ranks of this machine under every ZeRO stage, in two pipeline stages,
# and in two stages of two ranks that share their layers: what the planner says it holds and takes, on the machine as it was just measured, and what
# it held and took.
say "measuring this machine; planning, simulating and running llama-tiny on 4 ranks, 20 steps each"
python3 tests/bench/step_times.py --bin "$bin" --out build/quickstart --model llama-tiny --ranks 4 \
  --layout pp=2,zero_stage=1 --layout tp=2,pp=2,zero_stage=0
grep -q '^SHARDWISE_HAS_GUI:INTERNAL=ON' "build/$preset/CMakeCache.txt" && build_program shardwise-view
say "all of it after $SECONDS s, $begun of them for packages"
say "next, the ten best plans of these ranks, each trained beside its prediction:" \
    "$bin/shardwise measure --model llama-tiny --cluster build/quickstart/machine.json --gpus 4" \
    "--sequence-length 128 --global-batch-size 16"
say "or one layout in detail: $bin/shardwise estimate --model llama-3.1-8b" \
    "--cluster dgx-h100 --engine fsdp2 --zero-stage 3 --explain"
