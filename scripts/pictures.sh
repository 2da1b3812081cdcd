#!/usr/bin/env bash
# Draws the pictures of README.md into docs/pictures, or into DIR: scripts/pictures.sh [DIR].
# shardwise-view --shot draws them without a display, Chromium the page. Two of them lay a run of
# this machine over its prediction, so it trains llama-tiny for some seconds.
# SHARDWISE_PRESET=dev takes the programs of build/dev. PICTURES=explore draws only that one.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh
bin=build/${SHARDWISE_PRESET:-release}/bin
out=${1:-docs/pictures}
work=${1:-build/pictures}
pictures=${PICTURES:-explore memory timeline why report}
size=1280x780
most_bytes=225280
mkdir -p "$out" "$work"

# weigh NAME: says how large a picture is, and fails where that is too much.
weigh() {
  local bytes
  bytes=$(stat -c %s "$out/$1.png")
  say "$out/$1.png: $bytes bytes"
  [ "$bytes" -le "$most_bytes" ] || { say "$1.png has more than $most_bytes bytes"; return 1; }
}

# draw NAME PLAN [ARGUMENT…]: runs the script on standard input, which takes the picture itself.
draw() {
  local name=$1
  shift
  cat >"$work/$name.txt"
  "$bin/shardwise-view" --script "$work/$name.txt" --size "$size" "$@"
  weigh "$name"
}

# What the pictures with a measurement need: this machine, a plan for it, and a run of that plan.
measure() {
  [ -s "$work/measured.json" ] && return
  "$bin/shardwise-run" calibrate --ranks 4 -o "$work/machine.json" >"$work/calibrate.log"
  "$bin/shardwise" plan --model llama-tiny --cluster "$work/machine.json" --gpus 4 \
    --engine shardwise --precision fp32 --loss chunked --sequence-length 128 \
    --global-batch-size 8 --lock zero_stage=3 --lock dp_shard=4 --lock micro_batch_size=1 \
    -o "$work/tiny.json" >"$work/tiny.log"
  "$bin/shardwise-run" train "$work/tiny.json" --ranks 4 --data README.md --steps 20 \
    --report "$work/measured.json" --trace "$work/trace.json" >"$work/train.log"
}

seventy=(--model llama-3.1-70b --cluster dgx-h100 --gpus 64)
"$bin/shardwise" plan "${seventy[@]}" -o "$work/plan.json" >"$work/plan.log"

for picture in $pictures; do
  case $picture in
    explore)
      draw explore "$work/plan.json" <<END
table.fitting
press what_if.tp 60 0
shot $out/explore.png
release
END
      ;;
    memory)
      measure
      draw memory "$work/tiny.json" "$work/measured.json" <<END
view.memory
shot $out/memory.png
END
      ;;
    timeline)
      measure
      draw timeline "$work/tiny.json" "$work/trace.json" <<END
view.timeline
shot $out/timeline.png
END
      ;;
    why)
      draw why "$work/plan.json" <<END
table.fitting
why.layout zero_stage=3
shot $out/why.png
END
      ;;
    report)
      "$bin/shardwise" report "$work/plan.json" -o "$work/report.html"
      chromium --headless=new --no-sandbox --hide-scrollbars --force-device-scale-factor=1 \
        --window-size=1280,900 --screenshot="$out/report.png" \
        "file://$PWD/$work/report.html" 2>"$work/chromium.log"
      weigh report
      ;;
    *)
      say "no picture is named $picture"
      exit 2
      ;;
  esac
done
