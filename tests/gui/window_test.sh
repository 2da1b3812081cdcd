#!/usr/bin/env bash
# A real window on a display of its own: opens, takes the mouse and keys, ends.
# window_test.sh BIN SCRATCH; 77 where Xvfb or xdotool is missing.
set -euo pipefail
bin=$1
scratch=$2
for program in Xvfb xdotool; do
  command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
rm -rf "$scratch"
mkdir -p "$scratch"

display=
viewer=
end() {
  [ -z "$viewer" ] || kill -KILL "$viewer" 2>/dev/null || true
  [ -z "$display" ] || kill "$display" 2>/dev/null || true
}
trap end EXIT

# eventually WHAT COMMAND…: repeats a command until it succeeds, for at most 30 seconds.
eventually() {
  local what=$1
  shift
  for _ in $(seq 300); do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  echo "after 30 s: $what"
  [ ! -s "$scratch/viewer.log" ] || sed 's/^/shardwise-view: /' "$scratch/viewer.log"
  [ ! -s "$scratch/display.log" ] || sed 's/^/Xvfb: /' "$scratch/display.log"
  exit 1
}

find_window() {
  kill -0 "$viewer" 2>/dev/null || { echo "the viewer ended by itself"; cat "$scratch/viewer.log"; exit 1; }
  window=$(timeout 10 xdotool search --onlyvisible --name shardwise 2>/dev/null | head -1) || true
  [ -n "$window" ]
}

press() { timeout 10 xdotool key --window "$window" "$1"; }

# Asks again where the key was lost: a window without a window manager may not have the focus yet.
quit() {
  press ctrl+q 2>/dev/null || true
  sleep 0.2
  ! kill -0 "$viewer" 2>/dev/null
}

# The server picks a free number and writes it once it takes connections.
Xvfb -displayfd 3 -screen 0 1920x1200x24 -fbdir "$scratch" 3>"$scratch/number" 2>"$scratch/display.log" &
display=$!
eventually "Xvfb has not started" test -s "$scratch/number"
DISPLAY=:$(cat "$scratch/number")
export DISPLAY XDG_STATE_HOME=$scratch LIBGL_ALWAYS_SOFTWARE=1

"$bin/shardwise" plan --model gpt2 --cluster dgx-h100 --gpus 1 -o "$scratch/plan.json" >/dev/null
"$bin/shardwise-view" --size 1200x800 "$scratch/plan.json" >"$scratch/viewer.log" 2>&1 &
viewer=$!
eventually "the viewer shows no window" find_window
timeout 10 xdotool mousemove --window "$window" 600 400 click 1
for key in 2 3 4 5 1 Home Down ctrl+l ctrl+k Escape; do press "$key"; done

# A window at rest takes no processor time: it draws when something has happened.
ticks() { awk '{ print $14 + $15 }' "/proc/$viewer/stat"; }
at_rest() {
  local before
  before=$(ticks)
  sleep 1
  [ $(($(ticks) - before)) -le 1 ]
}
eventually "the viewer works on although nothing happens" at_rest

# What a window that was closed has covered is drawn again, between panels as well.
screen() { cp "$scratch/Xvfb_screen0" "$scratch/$1"; }
screen before
press question
eventually "the help does not open" bash -c "! cmp -s '$scratch/Xvfb_screen0' '$scratch/before'"
press Escape
eventually "rests of the help stay on the window" cmp -s "$scratch/Xvfb_screen0" "$scratch/before"
eventually "ctrl+q does not end the viewer" quit
code=0
wait "$viewer" || code=$?
viewer=
[ "$code" -eq 0 ] || { echo "the viewer ended with $code"; cat "$scratch/viewer.log"; exit 1; }
grep -q '"schema": "shardwise.view/1"' "$scratch/shardwise/view.json"

# Without anything it shows the menus of model and cluster. It writes neither below a relative folder
# (defect N7), nor what the view.json in HOME leads to, here of another user where root asks (N3).
mkdir -p "$scratch/user/.local/state/shardwise"
echo precious >"$scratch/mine"
ln -s "$scratch/mine" "$scratch/user/.local/state/shardwise/view.json"
[ "$(id -u)" != 0 ] || chown -hR 65534:65534 "$scratch/user"
env -C "$scratch" XDG_STATE_HOME=relative HOME="$scratch/user" \
  "$bin/shardwise-view" --size 1200x800 >"$scratch/viewer.log" 2>&1 &
viewer=$!
eventually "the viewer shows no window without a plan" find_window
eventually "ctrl+q does not end the viewer without a plan" quit
code=0
wait "$viewer" || code=$?
viewer=
[ "$code" -eq 0 ] || { echo "without a plan the viewer ended with $code"; cat "$scratch/viewer.log"; exit 1; }
[ "$(cat "$scratch/mine")" = precious ] || { echo "what view.json leads to was written"; exit 1; }
[ -L "$scratch/user/.local/state/shardwise/view.json" ] || { echo "view.json was replaced"; exit 1; }
[ ! -e "$scratch/relative" ] || { echo "a relative folder was made"; exit 1; }
echo "the window opened, took keys and ended with 0"
