#!/usr/bin/env bash
# From a bare Debian 12 to the best layouts of Llama-3.1-70B on 64 H100: installs what is missing,
# builds the `shardwise` command in build/release, plans. Needs no GPU. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

need_packages "${packages_build[@]}"
say "configuring build/release"
cmake --preset release -D BUILD_TESTING=OFF
say "building the shardwise command with $(nproc) cores"
cmake --build --preset release --target shardwise --parallel "$(nproc)"

plan=(plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 -o plan.json)
say "build/release/bin/shardwise ${plan[*]}"
build/release/bin/shardwise "${plan[@]}"
say "next, one layout in detail: build/release/bin/shardwise estimate --model llama-3.1-8b" \
    "--cluster dgx-h100 --engine fsdp2 --zero-stage 3 --explain"
