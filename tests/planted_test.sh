#!/usr/bin/env bash
# Nothing that a stranger puts beside our programs or into the current folder runs (defects N1 and N2),
# and no link of his is written through, of a build tree or an installed one. As root the stranger and
# the user are others; else one user in folders that anybody may write does for them.
# planted_test.sh BIN SCRATCH COMPILER: BIN has the programs, COMPILER makes a library.
set -euo pipefail
bin=$(realpath "$1")
scratch=$2
compiler=$3
rm -rf "$scratch"
mkdir -p "$scratch"
scratch=$(realpath "$scratch")
failed=0

stranger=()
user=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  stranger=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  user=(setpriv --reuid 12345 --regid 12345 --clear-groups)
fi

# What was planted says so, whoever runs it.
mark="planted code runs"
cat >"$scratch/evil.c" <<END
#include <stdio.h>
__attribute__((constructor)) static void say(void) { fputs("$mark\n", stderr); }
END
"$compiler" -shared -fPIC -x c -o "$scratch/evil.so" "$scratch/evil.c"
printf '#!/bin/sh\necho "%s"\n' "$mark" >"$scratch/evil"
chmod 755 "$scratch" "$scratch/evil" "$scratch/evil.so"
for folder in "$scratch" "$bin"; do
  while [ "$folder" != / ] && [ ${#user[@]} -gt 0 ]; do
    # Others have to come so far.
    if ! "${user[@]}" test -x "$folder"; then user=() stranger=(); fi
    folder=$(dirname "$folder")
  done
done

# plant FROM TO: as the stranger where there is one.
plant() { "${stranger[@]}" cp "$1" "$2" && "${stranger[@]}" chmod 755 "$2"; }

# expect WHAT CODE TEXT COMMAND…: the exit code, a text in what is said ("" for any), and no mark.
expect() {
  local what=$1 code=$2 text=$3 said got=0
  shift 3
  said=$("$@" 2>&1) || got=$?
  if [ "$got" != "$code" ] || [[ $said != *"$text"* ]] || [[ $said == *"$mark"* ]]; then
    printf '%s\n  %s\n  ends with %s, not %s, or says not "%s", or runs what was planted:\n%s\n' \
      "$what" "$*" "$got" "$code" "$text" "$said"
    failed=1
  fi
}

# The mark is seen where code does run, or this test could not fail.
if [[ $(LD_PRELOAD="$scratch/evil.so" /bin/true 2>&1) != *"$mark"* ]]; then
  echo "what is planted does not say so"
  exit 1
fi

# N1: a library in the current folder by the name of each that a program needs.
here=$scratch/here
mkdir -m 1777 "$here"
for program in "$bin"/shardwise "$bin"/shardwise-run "$bin"/shardwise-view; do
  [ -e "$program" ] || continue
  for library in $(objdump -p "$program" | awk '/NEEDED/ { print $2 }'); do
    [ -e "$here/$library" ] || plant "$scratch/evil.so" "$here/$library"
  done
done
for program in "$bin"/shardwise "$bin"/shardwise-run "$bin"/shardwise-view; do
  [ -e "$program" ] || continue
  expect "N1 of $(basename "$program")" 0 "" sh -c 'cd "$1" && exec "$2" --help' sh "$here" "$program"
done

# N2: beside the program, in a sticky folder.
sticky=$scratch/sticky
mkdir -m 1777 "$sticky"
cp "$bin/shardwise" "$sticky"
plant "$scratch/evil" "$sticky/shardwise-view"
for as in root user; do
  who=()
  [ $as = root ] || who=("${user[@]}")
  expect "N2 of view, as $as" 3 "shardwise-view is not trusted: " "${who[@]}" "$sticky/shardwise" view
  expect "N2, other verbs, as $as" 0 "fsdp2" "${who[@]}" "$sticky/shardwise" list engines
done
plant "$scratch/evil" "$sticky/shardwise-run"
expect "N2 of run" 3 "shardwise-run is not trusted: " "$sticky/shardwise" run plan.json
rm -f "$sticky/shardwise-run"

# A catalogue beside a program: a stranger's numbers are not taken for its own.
if [ ${#stranger[@]} -gt 0 ]; then
  mkdir -m 1777 "$scratch/prefix"
  mkdir -m 755 "$scratch/prefix/bin"
  cp "$bin/shardwise" "$scratch/prefix/bin"
  "${stranger[@]}" mkdir -p "$scratch/prefix/share/shardwise/configs/clusters"
  "${stranger[@]}" tee "$scratch/prefix/share/shardwise/configs/clusters/planted.json" \
    >/dev/null <"$(dirname "$0")/../configs/clusters/laptop.json"
  "$scratch/prefix/bin/shardwise" list clusters >"$scratch/listed" 2>&1 || true
  if grep -q planted "$scratch/listed"; then
    echo "a planted catalogue: its clusters are listed"
    failed=1
  fi
fi

if [ -e "$bin/shardwise-run" ]; then
  cp "$bin/shardwise-run" "$sticky"
  plant "$scratch/evil.so" "$sticky/libshardwise_cuda.so"
  for as in root user; do
    who=()
    [ $as = root ] || who=("${user[@]}")
    expect "N2 of the library, as $as" 0 "libshardwise_cuda.so is not trusted: " "${who[@]}" \
      "$sticky/shardwise-run" --version
  done

  # In the lib beside a bin that is safe itself.
  mkdir -p "$scratch/tree/bin"
  mkdir -m 1777 "$scratch/tree/lib"
  chmod 755 "$scratch/tree" "$scratch/tree/bin"
  cp "$bin/shardwise-run" "$scratch/tree/bin"
  plant "$scratch/evil.so" "$scratch/tree/lib/libshardwise_cuda.so"
  expect "N2 of the library in lib" 0 "libshardwise_cuda.so is not trusted: " \
    "$scratch/tree/bin/shardwise-run" --version

  # A stranger's link by the name of lib, to a folder of root's with a library of root's.
  if [ ${#stranger[@]} -gt 0 ]; then
    mkdir -m 1777 "$scratch/linked"
    mkdir -m 755 "$scratch/linked/bin" "$scratch/roots"
    cp "$bin/shardwise-run" "$scratch/linked/bin"
    cp "$scratch/evil.so" "$scratch/roots/libshardwise_cuda.so"
    "${stranger[@]}" ln -s "$scratch/roots" "$scratch/linked/lib"
    expect "N2 of the library behind a link" 0 "a link on the way to it belongs to another user" \
      "$scratch/linked/bin/shardwise-run" --version
  fi

  # A run without GPUs needs nothing of the library: it says so once, and trains.
  if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
    cat >"$scratch/tiny.json" <<'END'
{"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 64,
 "tie_word_embeddings": false}
END
    "$bin/shardwise" plan --model "$scratch/tiny.json" --cluster dgx-h100 --gpus 1 \
      --engine shardwise --sequence-length 16 --global-batch-size 1 -o "$scratch/plan.json" >/dev/null
    seq 1000 >"$scratch/text"
    train=(train "$scratch/plan.json" --steps 1 --data "$scratch/text")
    expect "a run that needs no library" 0 "libshardwise_cuda.so is not trusted: " \
      "$sticky/shardwise-run" "${train[@]}"
    expect "a run that does" 3 "libshardwise_cuda.so is not trusted: " \
      "$sticky/shardwise-run" "${train[@]}" --device cuda

    # Open MPI loads what is named as its component below HOME: of another user, as after sudo -E, or
    # of the current folder. mpirun itself has a HOME of its own here.
    home=$scratch/home
    mkdir -p "$home/.openmpi/components"
    cp "$scratch/evil.so" "$home/.openmpi/components/mca_btl_planted.so"
    if [ ${#stranger[@]} -gt 0 ] && objdump -p "$bin/shardwise-run" | grep -q "NEEDED.*libmpi" &&
      [[ $(HOME=$home ompi_info 2>&1) == *"$mark"* ]]; then
      "$bin/shardwise" plan --model "$scratch/tiny.json" --cluster dgx-h100 --gpus 2 \
        --engine shardwise --sequence-length 16 --global-batch-size 2 -o "$scratch/two.json" >/dev/null
      ranks=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -np 2 --oversubscribe)
      train=("$bin/shardwise-run" train "$scratch/two.json" --steps 1 --data "$scratch/text")
      expect "a component below a HOME that is relative" 0 "rank 1 on " \
        "${ranks[@]}" env -C "$home" HOME=. "${train[@]}"
      chown -R 65534:65534 "$home"
      expect "a component below the HOME of another user" 0 "rank 1 on " \
        "${ranks[@]}" env HOME="$home" "${train[@]}"
    fi
  fi
fi

# A stranger's link by the name of an output: what it leads to stays as it was.
if [ ${#stranger[@]} -gt 0 ]; then
  echo precious >"$scratch/mine"
  chmod 600 "$scratch/mine"
  "${stranger[@]}" ln -s "$scratch/mine" "$sticky/plan.json"
  question=(--model gpt2 --cluster dgx-h100 --gpus 1 -o "$sticky/plan.json")
  expect "a planted output" 2 "in a folder that anybody may write" "$bin/shardwise" plan "${question[@]}"
  if [ "$(cat "$scratch/mine")" != precious ]; then
    echo "a planted output: what the link leads to was written"
    failed=1
  fi
fi
rm -rf "$scratch"
exit $failed
