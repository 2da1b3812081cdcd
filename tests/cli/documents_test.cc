// Completion scripts and the manual page, read by the programs that they are for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string completed(const std::vector<std::string>& words) {
  std::vector<std::string> line = {"__complete"};
  line.insert(line.end(), words.begin(), words.end());
  return shardwise(line).out;
}

/// What `command` prints on either stream, with `text` in a file whose name stands for {}.
std::string output_of(std::string command, const std::string& text) {
  const test::Scratch scratch;
  const std::string file = scratch.write_bytes("input", text);
  const std::string printed = scratch.path("printed");
  for (std::size_t at = command.find("{}"); at != std::string::npos; at = command.find("{}")) {
    command.replace(at, 2, file);
  }
  EXPECT_EQ(std::system((command + " > " + printed + " 2>&1").c_str()), 0) << command;
  return test::bytes_of_file(printed);
}

TEST(Completion, KnowsVerbsFlagsAndValues) {
  EXPECT_THAT(completed({"si"}), HasSubstr("simulate\tSimulate one step"));
  EXPECT_THAT(completed({"plan", "--eng"}), HasSubstr("--engine\t"));
  EXPECT_THAT(completed({"plan", "--model", "gpt2"}), HasSubstr("gpt2\t\n"));
  EXPECT_THAT(completed({"plan", "--cluster", "dgx-h"}), HasSubstr("dgx-h100\t\n"));
  EXPECT_EQ(completed({"plan", "--engine", "fsdp1"}), "fsdp1\t\n");
  EXPECT_EQ(completed({"estimate", "--schedule", "zb_"}), "zb_h1\t\nzb_h2\t\nzb_v\t\n");
  EXPECT_EQ(completed({"simulate", "--host", ""}), "on\t\noff\t\n");
  EXPECT_EQ(completed({"list", "cl"}), "clusters\t\n");
  EXPECT_THAT(completed({"plan", "--lock", "dp"}), HasSubstr("dp_shard=\t\n"));
}

TEST(Completion, LeavesFilesToTheShell) {
  EXPECT_THAT(completed({"simulate", "--trace", ""}), IsEmpty());
  EXPECT_THAT(completed({"simulate", "pl"}), IsEmpty());
  EXPECT_THAT(completed({"nonsense", ""}), IsEmpty());
}

TEST(Completion, WorksInBash) {
  if (!installed("bash")) GTEST_SKIP() << "no bash here";
  const std::string script = shardwise({"completion", "bash"}).out + "\nCOMP_WORDS=(" +
                             test::built("shardwise") +
                             " plan --model llama-3.1-8)\nCOMP_CWORD=3\n_shardwise\n"
                             "echo \"${COMPREPLY[@]}\"\n";
  EXPECT_EQ(output_of("bash {}", script), "llama-3.1-8b\n");
}

TEST(Completion, IsReadByZshAndFish) {
  for (const std::string shell : {"zsh", "fish"}) {
    const std::string script = shardwise({"completion", shell}).out;
    EXPECT_THAT(script, HasSubstr("__complete"));
    if (!installed(shell)) continue;
    EXPECT_THAT(output_of(shell + " -n {}", script), IsEmpty());
  }
}

TEST(Manual, NamesEveryVerbAndFlag) {
  const std::string page = shardwise({"man"}).out;
  for (const char* name : {".SS shardwise plan\n", ".SS shardwise simulate\n",
                           "\\-\\-sequence\\-length", "\\-\\-why\\-not", "SHARDWISE_CONFIGS"}) {
    EXPECT_THAT(page, HasSubstr(name));
  }
}

TEST(Manual, IsFormattedWithoutWarnings) {
  if (!installed("groff")) GTEST_SKIP() << "no groff here";
  const std::string page = shardwise({"man"}).out;
  EXPECT_THAT(output_of("groff -man -Tutf8 -ww -z {}", page), IsEmpty());
  const std::string text = output_of("groff -man -Tutf8 {}", page);
  EXPECT_THAT(text, HasSubstr("sequence"));
  EXPECT_THAT(text, Not(HasSubstr("\\[u")));
}

}  // namespace
}  // namespace shardwise::cli
