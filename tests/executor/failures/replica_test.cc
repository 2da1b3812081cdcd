// A bit of a rank's memory that is flipped while the built program trains (docs/ranks.md,
// Replicas).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "executor/launch/launcher.h"
#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 3;
constexpr std::size_t kEvery = 5;    // steps between comparisons
constexpr std::size_t kHidden = 32;  // of tiny_plan()
constexpr std::uintptr_t kLongest = std::uintptr_t{1} << 30;

/// Writable memory of a process. Source: proc(5), /proc/[pid]/maps.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
std::vector<Range> writable(pid_t process) {
  std::vector<Range> found;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    Range range;
    char mode[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &range.begin, &range.end, mode) != 3) continue;
    // What a sanitizer reserves is longer than any memory of a rank of these.
    if (mode[0] == 'r' && mode[1] == 'w' && range.end - range.begin <= kLongest) {
      found.push_back(range);
    }
  }
  return found;
}

/// Flips the lowest bit of the first weight of each norm that a process has in its memory: all of
/// them are ones, and stay so where the learning rate is 0.
/// \param one  in the type of weights
/// \returns how many; -1 where the system lets nobody look
template <class Word>
int flip_norms(pid_t process, Word one) {
  const std::vector<Word> ones(kHidden, one);
  const std::size_t bytes = sizeof(Word) * kHidden;
  int flipped = 0;
  bool seen = false;
  for (const Range& range : writable(process)) {
    std::vector<Word> memory((range.end - range.begin) / sizeof(Word));
    const iovec here = {memory.data(), sizeof(Word) * memory.size()};
    const iovec there = {reinterpret_cast<void*>(range.begin), here.iov_len};
    const ssize_t read = ::process_vm_readv(process, &here, 1, &there, 1, 0);
    if (read <= 0) continue;
    seen = true;
    memory.resize(static_cast<std::size_t>(read) / sizeof(Word));
    for (std::size_t i = 0; i + kHidden <= memory.size(); ++i) {
      if (memory[i] != one || std::memcmp(&memory[i], ones.data(), bytes) != 0) continue;
      auto bits = static_cast<Word>(one ^ 1U);
      const iovec word = {&bits, sizeof(bits)};
      const iovec at = {reinterpret_cast<void*>(range.begin + sizeof(Word) * i), sizeof(bits)};
      flipped += ::process_vm_writev(process, &word, 1, &at, 1, 0) == sizeof(bits) ? 1 : 0;
      i += kHidden - 1;
    }
  }
  return seen ? flipped : -1;
}

/// The process of a rank, by what it was started with.
pid_t process_of(const std::vector<pid_t>& processes, int rank) {
  const std::string wanted = std::string(kRankVariable) + "=" + std::to_string(rank);
  for (const pid_t each : processes) {
    std::ifstream in("/proc/" + std::to_string(each) + "/environ");
    for (std::string variable; std::getline(in, variable, '\0');) {
      if (variable == wanted) return each;
    }
  }
  return -1;
}

/// How often a norm's weights are in a rank's memory depends on the engine; those of each layer and
/// the last one are.
int flip_norms(pid_t process, DType weights) {
  return weights == DType::bf16 ? flip_norms<std::uint16_t>(process, 0x3F80)
                                : flip_norms<std::uint32_t>(process, 0x3F80'0000);
}

class LiveReplica : public testing::TestWithParam<std::tuple<int, DType>> {};

TEST_P(LiveReplica, IsNamedAtTheNextComparisonAfterABitOfItsMemoryFlips) {
  const auto [zero_stage, precision] = GetParam();
  Plan plan = tiny_plan("shardwise", zero_stage, kRanks, 1);
  plan.job.precision = precision;
  plan.layout.overlap_param_gather = false;
  for (const int rank : {0, 2}) {
    const Scratch scratch;
    const std::string metrics = scratch.path("metrics.jsonl");
    const auto [program, arguments] = command_of(
        Started::local, kRanks,
        {scratch.write(plan), "--data", kTrainingText, "--steps", "1000000", "--learning-rate", "0",
         "--metrics", metrics, "--compare-replicas", std::to_string(kEvery)});
    RunningProgram run(program, arguments, scratch.path("out"), scratch.path("err"));
    while (losses_of(metrics).size() < 2 * kEvery && !run.wait(milliseconds(5))) {
    }
    const pid_t process = process_of(run.children("shardwise-run"), rank);
    ASSERT_GT(process, 0) << shardwise::test::bytes_of_file(scratch.path("err"));
    const std::size_t before = losses_of(metrics).size();
    const int flipped = flip_norms(process, precision);
    std::size_t after = losses_of(metrics).size();
    if (flipped < 0) GTEST_SKIP() << "no process may look into another one here (ptrace)";
    ASSERT_GE(flipped, 5) << "two norms of each layer, and the last one";
    // What flips while a rank waits in a gather is written over there, and no step uses it: then
    // the norms are ones again, and flip once more.
    constexpr int kMostTrials = 20;
    for (int trial = 1; zero_stage > 0 && trial < kMostTrials; ++trial) {
      if (run.wait(milliseconds(500))) break;
      const std::size_t now = losses_of(metrics).size();
      if (flip_norms(process, precision) > 0) after = std::max(now, losses_of(metrics).size());
    }
    ASSERT_TRUE(run.wait(kLongWait)) << "nothing differed";
    EXPECT_EQ(run.exit_code(), 3);
    const std::string said = shardwise::test::bytes_of_file(scratch.path("err"));
    const std::string others = rank == 0 ? "1 and 2" : "0 and 1";
    std::smatch found;
    ASSERT_TRUE(std::regex_search(
        said, found,
        std::regex("shardwise-run: rank " + std::to_string(rank) +
                   ": the copy of .*norm.weight .*differs from those of ranks " + others +
                   " after step ([0-9]+).*: memory, a device or a link altered it")))
        << said;
    const std::size_t step = std::stoul(found[1]);
    EXPECT_GE(step, before);
    EXPECT_LE(step, after + 1 + kEvery);  // one step may have run meanwhile
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, LiveReplica,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values(DType::fp32, DType::bf16)),
                         [](const auto& each) {
                           const bool bf16 = std::get<1>(each.param) == DType::bf16;
                           return "Zero" + std::to_string(std::get<0>(each.param)) +
                                  (bf16 ? "Bf16" : "Fp32");
                         });

}  // namespace
}  // namespace shardwise::exec::test
