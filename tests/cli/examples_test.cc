// Every command that a help text or the README's questions show ends with 0: a first try that fails
// is the last one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;

/// The commands below "Example" or "Examples" of a help text, continued lines joined.
std::vector<std::string> examples_in(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help);
  bool inside = false;
  bool continued = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) inside = false;
    if (inside) {
      const bool more = line.ends_with('\\');
      if (more) line.pop_back();
      if (continued) {
        commands.back() += line;
      } else {
        commands.push_back(line);
      }
      continued = more;
    }
    if (line == "Example" || line == "Examples") inside = true;
  }
  return commands;
}

/// The commands of README's table of questions: | question | `command` |.
std::vector<std::string> questions_of_readme() {
  std::vector<std::string> commands;
  std::ifstream readme("README.md");
  for (std::string line; std::getline(readme, line);) {
    const std::size_t from = line.find("? | `shardwise ");
    if (!line.starts_with("| ") || from == std::string::npos) continue;
    commands.push_back(line.substr(from + 5, line.rfind('`') - from - 5));
  }
  return commands;
}

std::string help_of(const std::string& verb) {
  const Outcome outcome = shardwise({verb, "--help"});
  EXPECT_EQ(outcome.exit_code, 0) << verb;
  return outcome.out;
}

const std::vector<std::string> kVerbsWithExamples = {
    "fits",   "mfu",   "estimate", "plan", "simulate", "compare", "report",     "export",
    "import", "check", "score",    "fit",  "size",     "list",    "completion", "man"};

/// A folder with the files that the examples name, where `shardwise` is on PATH.
class Folder {
 public:
  Folder() {
    fs::create_directories(scratch_.folder() / "configs/gpus");
    fs::create_directories(scratch_.folder() / "configs/collectives");
    fs::create_directories(scratch_.folder() / ".config/fish/completions");
    fs::create_directory_symlink(fs::absolute("examples"), scratch_.folder() / "examples");
    scratch_.write_bytes("gemm_h100_sxm.csv", gemm_table());
    scratch_.write_bytes("collectives.csv", collective_table());
    scratch_.write_bytes("ds_config.json",
                         R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
                             "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})");
    fs::copy_file("tests/golden/profiler_trace.json", scratch_.folder() / "rank0.pt.trace.json");
    const std::string job =
        " --model gpt2 --cluster dgx-h100 --engine fsdp2 --zero-stage 3 --global-batch-size 16 ";
    run("gzip rank0.pt.trace.json");
    run("shardwise plan --model gpt2 --cluster dgx-h100 --engine fsdp2 --global-batch-size 16 "
        "-o plan.json");
    run("shardwise simulate plan.json -o report.json --trace trace.json");
    run("shardwise simulate" + job + "-o a.json");
    fs::copy_file(scratch_.folder() / "plan.json", scratch_.folder() / "tiny.json");
    run("sed 's/\"origin\": \"predicted\"/\"origin\": \"measured\"/' report.json > measured.json");
    fs::copy_file(scratch_.folder() / "plan.json", scratch_.folder() / "other_plan.json");
    for (const char* copy : {"b", "predicted", "fsdp2", "megatron_fsdp"}) {
      fs::copy_file(scratch_.folder() / "a.json",
                    scratch_.folder() / (copy + std::string(".json")));
    }
  }

  void run(const std::string& command) const {
    const std::string bin = fs::path(test::built("shardwise")).parent_path().string();
    const std::string script = scratch_.write_bytes(
        "example.sh", "set -o pipefail\ncd " + scratch_.folder().string() +
                          "\nexport HOME=$PWD PATH=" + bin + ":$PATH\n" + command + "\n");
    const Outcome outcome = test::run_program("bash", {script});
    EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.out << outcome.err;
  }

 private:
  static std::string gemm_table() {
    std::ostringstream rows;
    rows << "gemm_dtype,m,n,k,latency\n";
    for (const std::int64_t m : {1024, 2049, 4096, 8192}) {
      for (const std::int64_t n : {1024, 2560, 7168, 28672}) {
        for (const std::int64_t k : {1024, 2560, 7168, 28672}) {
          const auto flops = static_cast<double>(2 * m * n * k);
          rows << "bfloat16," << m << "," << n << "," << k << "," << 5e-3 + flops / 6.5e11 << "\n";
        }
      }
    }
    return rows.str();
  }

  static std::string collective_table() {
    std::ostringstream rows;
    rows << "gpu,dtype,op,gpus,bytes,time_us\n";
    for (const char* op : {"all_gather", "reduce_scatter", "all_reduce"}) {
      for (const int gpus : {2, 4, 8}) {
        for (int bits = 12; bits <= 30; bits += 2) {
          const auto bytes = static_cast<double>(std::int64_t{1} << bits);
          rows << "h100_sxm,half," << op << "," << gpus << "," << (std::int64_t{1} << bits) << ","
               << 15 + bytes / 3.5e5 << "\n";
        }
      }
    }
    return rows.str();
  }

  test::Scratch scratch_;
};

TEST(Examples, OfHelpAndReadmeEndWithSuccess) {
  if (test::kSanitized) GTEST_SKIP() << "searches of minutes, whose parts other tests run";
  std::vector<std::string> commands = examples_in(shardwise({"--help"}).out);
  for (const std::string& verb : kVerbsWithExamples) {
    const std::vector<std::string> some = examples_in(help_of(verb));
    EXPECT_FALSE(some.empty()) << verb << " has no example";
    commands.insert(commands.end(), some.begin(), some.end());
  }
  const std::vector<std::string> questions = questions_of_readme();
  EXPECT_EQ(questions.size(), 17U);
  commands.insert(commands.end(), questions.begin(), questions.end());
  const Folder folder;
  std::set<std::string> done;
  for (const std::string& command : commands) {
    if (command.find("| man ") != std::string::npos && !installed("man")) continue;
    if (command.starts_with("shardwise measure ")) continue;  // trains: measured_plans_test.cc
    std::istringstream words(command);
    std::string plain;  // spaces do not make another command
    for (std::string word; words >> word;) plain += word + " ";
    if (done.insert(plain).second) folder.run(command);
  }
  EXPECT_GE(done.size(), 20U);
}

// README says so.
TEST(Examples, AnswersHaveJsonAndLong) {
  for (const char* verb : {"estimate", "plan", "simulate", "compare", "score", "size"}) {
    const Outcome all = shardwise({verb, "--help-all"});
    const std::string help = all.exit_code == 0 ? all.out : help_of(verb);
    EXPECT_THAT(help, testing::HasSubstr("--json")) << verb;
    EXPECT_THAT(help, testing::HasSubstr("--long")) << verb;
  }
}

TEST(Help, ShowsTwelveFlagsAtMostAndNamesTheirValues) {
  for (const std::string& verb : kVerbsWithExamples) {
    const Outcome all = shardwise({verb, "--help-all"});
    EXPECT_THAT(all.exit_code == 0 ? all.out : "", testing::Not(testing::HasSubstr("TEXT")));
    std::istringstream lines(help_of(verb));
    int flags = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, testing::Not(testing::HasSubstr("TEXT")));
      if (line.starts_with("  -")) ++flags;
    }
    EXPECT_LE(flags, 12) << verb;
  }
}

}  // namespace
}  // namespace shardwise::cli
