#!/usr/bin/env bash
# Shows with a GPU what tests cannot show without: kernels, numbers, memory, speed, failures.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/gpu_check.sh OUT [--short] [--minutes N] [--deliver DIR] [--binaries DIR] [--only PART]…
                            [--again|--wrong-again]

Checks Shardwise on the GPU of this machine, part by part, and writes OUT/PART.json as it goes.
Needs no network. A second call resumes where the first stopped; results of other programs run
again. OUT/all.json has everything in one file: copied alone into OUT on another machine of the
same kind, it resumes there.

  --short           For a GPU that is there for a few calls of ten minutes: first what tells most, a row
                    at a time (part short); the other parts once that is done
  --minutes N       Time for this call; parts that do not fit are left for the next [60; 9 with --short].
                    Each part has a limit (--list), but one that is asked for alone
  --deliver DIR     Copy what is worth sending back into DIR, at most four files: all.json, summary.json,
                    log, and the newest trace
  --binaries DIR    shardwise, shardwise-run, libshardwise_cuda.so, gpu_kernels_test,
                    gpu_compute_test, gpu_ceilings [of a copy: its bin; else built in build/release]
  --gpu N           The GPU, as nvidia-smi counts [0]
  --pytorch PYTHON  A Python that has PyTorch, for the part pytorch; NVIDIA's libraries that it
                    has are used by all parts [python3]
  --only PART       This part alone; repeatable
  --again           Drop what OUT has of the parts that run
  --wrong-again     Drop what is wrong of the parts that run, and nothing else
  --small           Small sizes and few steps: shows that the parts run, no figure of worth
  --list            Print the parts and their time limits
  --help            Print this help

Exit codes
  0 everything done and right   1 something is wrong   2 bad use   3 not done: no GPU, or no time
TEXT
}

# By value: what a first hour on a GPU should tell first. Seconds that each may take: an hour reaches all.
parts=(ceilings:150 kernels:300 numbers:420 memory:240 predictions:600 sanitizers:390 checkpoints:120
  faults:180 pytorch:1200)
# A short call has no time for anything but its first rows.
short_parts=(ceilings:120 short:1500 faults:180 numbers:420 memory:240 predictions:600 checkpoints:120
  kernels:300 sanitizers:390 pytorch:1200)

bad_use() {
  printf 'gpu_check.sh: %s\n' "$1" >&2
  exit 2
}
missing() {
  printf 'gpu_check.sh: %s\n' "$1" >&2
  exit 3
}

out='' minutes='' short='' deliver='' binaries='' gpu=0 pytorch=python3 again=() small='' only=()
while [ $# -gt 0 ]; do
  case $1 in
    --minutes | --binaries | --gpu | --pytorch | --only | --deliver)
      [ $# -ge 2 ] || bad_use "$1 takes a value"
      case $1 in
        --minutes) minutes=$2 ;;
        --deliver) deliver=$2 ;;
        --binaries) binaries=$2 ;;
        --gpu) gpu=$2 ;;
        --pytorch) pytorch=$2 ;;
        --only) only+=("$2") ;;
      esac
      shift
      ;;
    --again | --wrong-again) again+=("$1") ;;
    --small) small=--small ;;
    --short) short=yes ;;
    --list)
      [ -z "$short" ] || parts=("${short_parts[@]}")
      for part in "${parts[@]}"; do printf '%-12s %5s s\n' "${part%:*}" "${part#*:}"; done
      exit 0
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*) bad_use "unknown flag $1: see --help" ;;
    *)
      [ -z "$out" ] || bad_use "one folder, not $out and $1"
      out=$1
      ;;
  esac
  shift
done
[ -n "$out" ] || bad_use "name a folder for the results: see --help"
[ -z "$short" ] || parts=("${short_parts[@]}")
minutes=${minutes:-$([ -n "$short" ] && echo 9 || echo 60)}
[[ $minutes =~ ^[1-9][0-9]{0,4}$ ]] || bad_use "--minutes $minutes is not a whole number of minutes"
[[ $gpu =~ ^[0-9]{1,3}$ ]] || bad_use "--gpu $gpu is not the number of a GPU"
for name in "${only[@]}"; do
  [[ " ${parts[*]}" == *" $name:"* ]] || bad_use "--only $name: no such part, see --list"
done

mkdir -p "$out" || missing "cannot make the folder $out"
out=$(cd "$out" && pwd)
[ -z "$binaries" ] || binaries=$(cd "$binaries" 2>/dev/null && pwd) || bad_use "--binaries: no such folder"
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || missing "python3 is not installed"
command -v "$pytorch" >/dev/null || bad_use "--pytorch $pytorch: no such program"
command -v nvidia-smi >/dev/null || missing "no GPU: nvidia-smi is not installed"
nvidia-smi -i "$gpu" --query-gpu=name --format=csv,noheader >/dev/null 2>&1 ||
  missing "no GPU $gpu: $(nvidia-smi -i "$gpu" 2>&1 | head -1)"
# As nvidia-smi counts, for everything that runs from here on.
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$gpu

# Copies what is worth sending back, each file whole or not at all.
send() {
  [ -n "$deliver" ] || return 0
  local file newest
  newest=$(find "$out" -name '*.trace.json*' -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d ' ' -f 2-)
  for file in "$out/all.json" "$out/summary.json" "$out/log" ${newest:+"$newest"}; do
    [ -f "$file" ] || continue
    cp "$file" "$deliver/.part" && mv "$deliver/.part" "$deliver/$(basename "$file")"
  done
}
# The log first has what was printed last.
send_at_the_end() {
  exec >&- 2>&-
  wait "${logs[@]}" 2>/dev/null || true
  send
}

# Two checks at once would share the GPU, and each measure the other.
exec 9>"$out/lock"
flock -n 9 || missing "$out is in use by another gpu_check.sh"
if [ -n "$deliver" ]; then
  mkdir -p "$deliver" 2>/dev/null && [ -w "$deliver" ] || missing "cannot write the folder $deliver"
  deliver=$(cd "$deliver" && pwd)
  [ "$deliver" != "$out" ] || bad_use "--deliver: a folder other than $out"
  exec > >(tee -a "$out/log")
  logs=($!)
  exec 2> >(tee -a "$out/log" >&2)
  logs+=($!)
  trap send_at_the_end EXIT
fi

programs=(shardwise shardwise-run gpu_kernels_test gpu_compute_test gpu_ceilings)
# A copy for a cluster has its programs beside it and nothing to build from.
[ -n "$binaries" ] || [ -e CMakeLists.txt ] || binaries=$(cd ../bin 2>/dev/null && pwd) ||
  bad_use "--binaries: needed, for here is nothing to build from"
if [ -z "$binaries" ]; then
  binaries=$PWD/build/release/bin
  cmake --preset release -D SHARDWISE_CUDA=on >"$out/build.log" 2>&1 ||
    missing "cannot build for GPUs here: see $out/build.log"
  cmake --build --preset release --parallel "$(nproc)" --target "${programs[@]}" shardwise_cuda \
    >>"$out/build.log" 2>&1 || missing "the build failed: see $out/build.log"
fi
for program in shardwise shardwise-run; do
  [ -x "$binaries/$program" ] || missing "$binaries has no $program"
done
[ -e "$binaries/libshardwise_cuda.so" ] || [ -e "$binaries/../lib/libshardwise_cuda.so" ] ||
  missing "no libshardwise_cuda.so in $binaries or in $binaries/../lib: shardwise-run computes on GPUs by it"

# PyTorch's wheels bring cuBLASLt, cuDNN and NCCL: where they do, both sides have the same ones.
folders=$("$pytorch" -c 'import glob, nvidia
print(":".join(sorted(each for root in nvidia.__path__ for each in glob.glob(root + "/*/lib"))))' 2>/dev/null) || folders=''
[ -z "$folders" ] || export LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

versions=''
for program in shardwise shardwise-run; do
  said=$("$binaries/$program" --version 2>&1) ||
    missing "$binaries/$program does not start: $(printf '%s' "${said:-it says nothing}" | head -1)"
  versions+=$said$'\n'
done
unusable=$(grep -m 1 -E '^(GPUs cannot be used|no GPUs): ' <<<"$versions") && missing "$binaries/shardwise-run: $unusable"

python3 scripts/gpu_check/machine.py --out "$out" --binaries "$binaries" --versions "$versions" --gpu "$gpu" || exit $?
deadline=$((SECONDS + 60 * minutes))
for part in "${parts[@]}"; do
  name=${part%:*} limit=${part#*:}
  [ ${#only[@]} -eq 0 ] || [[ " ${only[*]} " == *" $name "* ]] || continue
  left=$((deadline - SECONDS))
  [ "$left" -gt 5 ] || break
  # Of a part that was asked for alone, all that is left.
  { [ ${#only[@]} -ne 1 ] && [ "$limit" -lt "$left" ]; } || limit=$left
  printf '== %s, at most %s s\n' "$name" "$limit"
  # A part ends by itself; what hangs in it is killed soon after its time, and its file stays whole.
  timeout --signal=TERM --kill-after=20 "$((limit + 20))" \
    python3 "scripts/gpu_check/part_$name.py" --out "$out" --binaries "$binaries" --gpu "$gpu" \
    --pytorch "$pytorch" --seconds "$limit" "${again[@]}" $small || true
  send  # whatever ends this call later
done
python3 scripts/gpu_check/summary.py --out "$out" --parts "${parts[*]%:*}"
