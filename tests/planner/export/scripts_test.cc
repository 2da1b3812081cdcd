// Launch scripts as people write them, in tests/planner/export/scripts: bash runs them with
// stand-ins for launchers, which write down their words. The reader's words must be the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/export/shell/shell_text.h"
#include "planner/spec/text/number.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// Runs a script in `scratch`. \returns the words of every call of a launcher
std::vector<Words> calls_of(const fs::path& script, const test::Scratch& scratch) {
  const std::string run = scratch.write_bytes(
      "run_script",
      "set -e\nscript=$(realpath \"$1\")\ncd \"$(dirname \"$0\")\"\nmkdir -p .bin\n"
      "printf '%s\\n' '#!/bin/bash' 'printf \"%s\\0\" $(($# + 1)) \"${0##*/}\" \"$@\" >> "
      "\"$CALLS\"' "
      "> .bin/torchrun\nchmod +x .bin/torchrun\n"
      "for name in srun accelerate deepspeed python python3 mpirun scontrol; do "
      "cp .bin/torchrun .bin/$name; done\n"
      "printf '%s\\n' '#!/bin/bash' 'while [[ $1 == -* ]]; do' "
      "'[[ $1 == -J || $1 == --job-name ]] && shift; shift; done' "
      "'exec bash \"${@:-/dev/stdin}\"' > .bin/sbatch\nchmod +x .bin/sbatch\n"
      "env -i PATH=\"$PWD/.bin:$PATH\" CALLS=\"$PWD/.calls\" LC_ALL=C.UTF-8 SLURM_NNODES=4 "
      "SLURM_JOB_NODELIST=n[1-4] "
      "bash \"$script\" > .out 2> .err < /dev/null\n");
  const test::Outcome outcome = test::run_program("bash", {run, script.string()});
  EXPECT_EQ(outcome.exit_code, 0) << script << outcome.err
                                  << test::bytes_of_file(scratch.path(".err"));
  std::vector<Words> calls;
  const std::string bytes = test::bytes_of_file(scratch.path(".calls"));
  std::size_t left = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = bytes.find('\0', at);
    std::string word = bytes.substr(at, end - at);
    at = end + 1;
    if (left == 0) {
      left = static_cast<std::size_t>(parse_integer(word).value_or(1));
      calls.emplace_back();
    } else {
      calls.back().push_back(std::move(word));
      --left;
    }
  }
  return calls;
}

/// Whether bash may have made `words` of what was read: a variable that nobody knows is no word,
/// or any.
bool agree(const std::vector<ShellWord>& read, const Words& words) {
  std::size_t at = 0;
  for (const ShellWord& each : read) {
    const bool is_next = at < words.size() && words[at] == each.text;
    const bool is_open = !each.unknown.empty();
    const bool is_all = is_open && each.text == each.unknown.front();
    if (is_all && (at == words.size() || words[at].starts_with("--"))) continue;
    if (!is_next && !(is_open && at < words.size())) return false;
    ++at;
  }
  return at == words.size();
}

std::vector<fs::path> scripts() {
  std::vector<fs::path> all;
  for (const auto& each : fs::directory_iterator("tests/planner/export/scripts")) {
    all.push_back(each.path());
  }
  std::ranges::sort(all);
  return all;
}

Words word_texts(const std::vector<ShellWord>& words) {
  Words texts;
  for (const ShellWord& each : words) texts.push_back(each.text);
  return texts;
}

TEST(Scripts, HaveTheWordsThatBashMakes) {
  EXPECT_EQ(scripts().size(), 18U);
  for (const fs::path& script : scripts()) {
    SCOPED_TRACE(script.filename());
    const Result<ShellCommand> read =
        read_shell(test::bytes_of_file(script), script.filename().string());
    ASSERT_TRUE(read.ok()) << to_string(read.problems());
    const test::Scratch scratch;
    const std::vector<Words> calls = calls_of(script, scratch);
    const bool is_one =
        std::ranges::any_of(calls, [&](const Words& call) { return agree(read->words, call); });
    EXPECT_TRUE(is_one) << testing::PrintToString(word_texts(read->words))
                        << "\nbash: " << testing::PrintToString(calls);
    for (const WrittenFile& each : read->files) {
      EXPECT_EQ(test::bytes_of_file(scratch.path(each.name)), each.text) << each.name;
    }
  }
}

// Bash takes a carriage return for a character; people's editors add them all the same.
TEST(Scripts, HaveTheSameWordsWithTheLineEndsOfWindows) {
  for (const fs::path& script : scripts()) {
    const std::string text = test::bytes_of_file(script);
    std::string other;
    for (const char c : text) other += c == '\n' ? "\r\n" : std::string(1, c);
    const Result<ShellCommand> first = read_shell(text, "run.sh");
    const Result<ShellCommand> second = read_shell(other, "run.sh");
    ASSERT_TRUE(first.ok() && second.ok()) << script;
    EXPECT_EQ(word_texts(first->words), word_texts(second->words)) << script;
  }
}

}  // namespace
}  // namespace shardwise
