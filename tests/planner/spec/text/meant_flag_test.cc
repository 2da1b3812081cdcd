#include "planner/spec/text/meant_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/text/flag_names.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kFlags = {"--model",
                                         "--cluster",
                                         "--gpus",
                                         "--engine",
                                         "--sequence-length",
                                         "--global-batch-size",
                                         "--precision",
                                         "--tp",
                                         "--cp",
                                         "--pp",
                                         "--vpp",
                                         "--ep",
                                         "--etp",
                                         "--dp-shard",
                                         "--dp-replicate",
                                         "--micro-batch-size",
                                         "--zero-stage",
                                         "--recompute",
                                         "--recompute-interval",
                                         "--sequence-parallel",
                                         "--overlap-grad-reduce",
                                         "--offload-optimizer",
                                         "--offload-activations",
                                         "--fp32-gradients",
                                         "--output",
                                         "--json"};
const std::vector<std::string> kSwitches = {"--sequence-parallel", "--overlap-grad-reduce",
                                            "--fp32-gradients", "--json"};

std::vector<std::string> meant(std::string_view typed) {
  return meant_flags(typed, kFlags, kSwitches);
}

TEST(MeantFlags, KnowsTheNamesOfOtherPrograms) {
  const std::vector<std::pair<const char*, const char*>> names = {
      {"--seq", "--sequence-length"},
      {"--seq-len", "--sequence-length"},
      {"--seq-length", "--sequence-length"},
      {"--seq_len", "--sequence-length"},
      {"--training.seq_len=8192", "--sequence-length"},
      {"--gbs", "--global-batch-size"},
      {"--global-batch", "--global-batch-size"},
      {"--train_batch_size", "--global-batch-size"},
      {"--mbs", "--micro-batch-size"},
      {"--micro-batch", "--micro-batch-size"},
      {"--training.local_batch_size", "--micro-batch-size"},
      {"--train_micro_batch_size_per_gpu", "--micro-batch-size"},
      {"--tensor-parallel", "--tp"},
      {"--tensor-model-parallel-size", "--tp"},
      {"--parallelism.tensor_parallel_degree", "--tp"},
      {"--pipeline-model-parallel-size", "--pp"},
      {"--context-parallel-size", "--cp"},
      {"--expert-model-parallel-size", "--ep"},
      {"--parallelism.data_parallel_shard_degree", "--dp-shard"},
      {"--num-gpus", "--gpus"},
      {"--world-size", "--gpus"},
      {"--zero", "--zero-stage"},
      {"--zero_optimization.stage", "--zero-stage"},
      {"--use-distributed-optimizer", "--zero-stage 1"},
      {"--bf16", "--precision bf16"},
      {"--recompute-granularity", "--recompute"},
      {"--model-name", "--model"},
  };
  for (const auto& [typed, flag] : names) EXPECT_THAT(meant(typed), ElementsAre(flag)) << typed;
  for (const char* both : {"--batch", "--batch-size", "--bs"}) {
    EXPECT_THAT(meant(both), ElementsAre("--global-batch-size", "--micro-batch-size")) << both;
  }
}

// Every axis by every name with every ending that Megatron, DeepSpeed, torchtitan and others give
// it; never another axis.
TEST(MeantFlags, KnowEveryAxisByEveryEnding) {
  for (const FlagName& axis : kAxisNames) {
    for (const std::string_view ending : kAxisEndings) {
      for (const char between : {'-', '_'}) {
        std::string typed = "--" + std::string(axis.theirs) + std::string(ending);
        std::replace(typed.begin() + 2, typed.end(), '-', between);
        std::string found;
        for (const std::string& each : meant(typed)) found += (found.empty() ? "" : " or ") + each;
        EXPECT_EQ(found, axis.ours) << typed;
      }
    }
  }
  for (const char* typed : {"--dp-size", "--dp_size=4", "--dp-siz", "--dp-degre"}) {
    EXPECT_THAT(meant(typed), ElementsAre("--dp-shard", "--dp-replicate")) << typed;
  }
}

TEST(MeantFlags, ReadsDashesCaseAndValues) {
  for (const char* typed : {"-tp", "--TP", "--tp=8"})
    EXPECT_THAT(meant(typed), ElementsAre("--tp"));
  EXPECT_THAT(meant("--dp_shard"), ElementsAre("--dp-shard"));
  EXPECT_THAT(meant("--sequence_Length"), ElementsAre("--sequence-length"));
  EXPECT_THAT(meant("--"), IsEmpty());
  EXPECT_THAT(meant("---"), IsEmpty());
}

TEST(MeantFlags, TurnsSwitchesOffAndOn) {
  EXPECT_THAT(meant("--no-overlap-grad-reduce"), ElementsAre("--overlap-grad-reduce=false"));
  EXPECT_THAT(meant("--disable_sequence_parallel"), ElementsAre("--sequence-parallel=false"));
  EXPECT_THAT(meant("--use-fp32-gradients"), ElementsAre("--fp32-gradients"));
}

TEST(MeantFlags, CompletesTheBeginningOfAFlag) {
  EXPECT_THAT(meant("--glob"), ElementsAre("--global-batch-size"));
  EXPECT_THAT(meant("--off"), ElementsAre("--offload-optimizer", "--offload-activations"));
  EXPECT_THAT(meant("--seq-par"), ElementsAre("--sequence-parallel"));
}

TEST(MeantFlags, MendsASlipOfAnyName) {
  EXPECT_THAT(meant("--sequence-lenght"), ElementsAre("--sequence-length"));
  EXPECT_THAT(meant("--tensor-model-paralel-size"), ElementsAre("--tp"));
  EXPECT_THAT(meant("--frobnicate"), IsEmpty());
}

TEST(MeantFlags, FindsAFlagByItsWords) {
  EXPECT_THAT(meant("--length"), ElementsAre("--sequence-length"));
  EXPECT_THAT(meant("--interval"), ElementsAre("--recompute-interval"));
}

TEST(MeantFlags, NamesOnlyFlagsThatTheProgramHas) {
  EXPECT_THAT(meant_flags("--seq", {"--model", "--json"}), IsEmpty());
  EXPECT_THAT(meant_flags("--batch", {"--micro-batch-size"}), ElementsAre("--micro-batch-size"));
}

// A name that is in the table twice, or not as bare_flag() makes it, would never be found.
TEST(FlagNames, AreEachFound) {
  for (const FlagName& name : kFlagNames) {
    EXPECT_EQ(bare_flag(name.theirs), name.theirs);
    const std::string ours(name.ours.substr(0, name.ours.find(" or ")));
    const std::string flag = ours.substr(0, ours.find_first_of(" ="));
    EXPECT_THAT(meant_flags("--" + std::string(name.theirs), {flag}), ElementsAre(ours));
  }
}

}  // namespace
}  // namespace shardwise
