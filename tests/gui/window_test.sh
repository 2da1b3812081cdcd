#!/usr/bin/env bash
# A real window on a display of its own: opens, takes the mouse and keys, ends.
# window_test.sh BIN SCRATCH; 77 where Xvfb or xdotool is missing.
set -euo pipefail
bin=$1
scratch=$2
for program in xvfb-run xdotool; do
  command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
rm -rf "$scratch"
mkdir -p "$scratch"
"$bin/shardwise" plan --model gpt2 --cluster dgx-h100 --gpus 1 -o "$scratch/plan.json" >/dev/null
cat >"$scratch/drive.sh" <<'DRIVE'
set -euo pipefail
"$1/shardwise-view" --size 1200x800 "$2/plan.json" &
viewer=$!
# The command waits until the window is there.
window=$(xdotool search --sync --onlyvisible --name shardwise | head -1)
xdotool mousemove --window "$window" 600 400 click 1
for key in 2 3 4 5 1 Home Down ctrl+l ctrl+k Escape; do xdotool key --window "$window" "$key"; done
xdotool key --window "$window" ctrl+q
wait "$viewer"
DRIVE
XDG_STATE_HOME=$scratch LIBGL_ALWAYS_SOFTWARE=1 xvfb-run -a -s "-screen 0 1920x1200x24" bash "$scratch/drive.sh" "$bin" "$scratch"
grep -q '"schema": "shardwise.view/1"' "$scratch/shardwise/view.json"
echo "the window opened, took keys and ended with 0"
