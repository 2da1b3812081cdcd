#!/usr/bin/env bash
# Plants a defect of each kind in a clone of HEAD, and shows that the step of .ci/run that should find
# it passes before and fails after: tests/gate_test.sh SCRATCH [KIND…]. Kinds: format, test, leak, race,
# include (a missing one, which preset apart finds), unused (an include, which scripts/unused_includes.sh
# finds). No part of the tests: it builds four presets in part,
# ten minutes with a filled compiler cache. Exit codes: 0 each is found, 1 one is not, 2 bad use.
# shellcheck disable=SC2034,SC2317  # called and read by their names
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { echo "gate_test.sh: name a folder for the clone" >&2; exit 2; }
scratch=$1
shift
kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(format test leak race include unused)
for kind in "${kinds[@]}"; do
  [[ $kind =~ ^(format|test|leak|race|include|unused)$ ]] ||
    { echo "gate_test.sh: unknown kind $kind: format, test, leak, race, include or unused" >&2; exit 2; }
done
[ ! -e "$scratch" ] || { echo "gate_test.sh: $scratch is there: name a new folder" >&2; exit 2; }
git clone --quiet --no-hardlinks . "$scratch"
cd "$scratch"
mkdir -p build
eval "$(sed -n '/^check_format() {/,/^}/p' .ci/run)"  # the step's own

words=tests/planner/command/command_words_test.cc
recorder=tests/executor/recorder/measured_trace_test.cc

# plant FILE TEXT: a test of its own at the end of a file.
plant() { printf '\n%s\n' "$2" >>"$1"; }

# watched PRESET LABEL TARGET TEST [OPTION…]: builds a target, and runs its tests that have the label.
watched() {
  local preset=$1 label=$2 target=$3 test=$4
  shift 4
  cmake --preset "$preset" "$@" &&
    cmake --build --preset "$preset" --parallel "$(nproc)" --target "$target" &&
    ctest --test-dir "build/$preset" --no-tests=error --output-on-failure -L "$label" -R "$test"
}

plant_format() { plant "$words" 'int   planted ;'; }
step_format() { check_format; }
said_format="clang-format-violations"

plant_test() { plant "$words" 'TEST(HelpRow, Planted) { EXPECT_EQ(1, 2); }'; }
step_test() { watched dev "" planner_command_test HelpRow; }
said_test="HelpRow.Planted"

plant_leak() { plant "$words" 'TEST(HelpRow, Planted) { EXPECT_NE(new int(1), nullptr); }'; }
step_leak() { watched asan bytes planner_command_test planner_command_test -D SHARDWISE_FUZZ=ON; }
said_leak="LeakSanitizer: detected memory leaks"

plant_race() {
  plant "$recorder" '#include <thread>
TEST(MeasuredTrace, Planted) {
  int count = 0;
  std::thread other([&] { ++count; });
  ++count;
  other.join();
  EXPECT_GE(count, 1);
}'
}
step_race() { watched tsan threads executor_recorder_test executor_recorder_test; }
said_race="ThreadSanitizer: data race"

# In the group of sources another one includes it first: preset dev would not see it.
plant_include() { sed -i '/#include <CLI\/CLI.hpp>/d' planner/command/unknown_words.cc; }
step_include() {
  cmake --preset apart && cmake --build --preset apart --parallel "$(nproc)" --target planner_command
}
said_include="incomplete type"

plant_unused() { sed -i '0,/^#include </s//#include <deque>\n&/' "$words"; }
step_unused() { scripts/unused_includes.sh "$words"; }
said_unused="included header deque is not used directly"

failed=0
for kind in "${kinds[@]}"; do
  start=$SECONDS
  verdict=found
  if ! "step_$kind" >"build/$kind.before" 2>&1; then
    verdict="NOT SHOWN: the step fails without it (build/$kind.before)"
  else
    "plant_$kind"
    said=said_$kind
    if "step_$kind" >"build/$kind.after" 2>&1; then
      verdict="NOT FOUND"
    elif ! grep -qF "${!said}" "build/$kind.after"; then
      verdict="NOT NAMED: \"${!said}\" is not said (build/$kind.after)"
    fi
    git checkout --quiet .
  fi
  [ "$verdict" = found ] || failed=1
  printf '%-8s %s, %d s\n' "$kind" "$verdict" "$((SECONDS - start))"
done
exit $failed
