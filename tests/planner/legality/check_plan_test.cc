// What a plan's rules say, at its place in the file: tests/golden/plan.json with something changed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "planner/legality/legality.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/plan/plan.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

class CheckPlan : public testing::Test {
 protected:
  void change(const std::string& from, const std::string& to) {
    const std::size_t at = text_.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text_.replace(at, from.size(), to);
  }
  /// Without the folder before the file's name.
  std::string problems() {
    const test::Scratch scratch;
    const std::string path = scratch.write_bytes("plan.json", text_);
    const Result<Plan> plan = read_plan(path, check_plan);
    if (plan.ok()) return "";
    std::string said = to_string(plan.problems());
    for (std::size_t at = said.find(path); at != std::string::npos; at = said.find(path)) {
      said.replace(at, path.size(), "plan.json");
    }
    return said;
  }

 private:
  std::string text_ = *read_file("tests/golden/plan.json");
};

TEST_F(CheckPlan, FindsNothingInOneThatRuns) { EXPECT_EQ(problems(), ""); }

TEST_F(CheckPlan, PointsAtTheKeyThatBreaksARule) {
  change("\"micro_batch_size\": 4", "\"micro_batch_size\": 3");
  EXPECT_EQ(problems(),
            "plan.json:14:25: /layout/micro_batch_size: dp 1 x micro_batch_size 3 does not divide "
            "4 sequences (NVIDIA/Megatron-LM@d98e8a64:megatron/core/num_microbatches_calculator.py:"
            "381)\n    use 1 or 2\n1 problem, nothing was run\n");
}

TEST_F(CheckPlan, NamesKeysWhereTheCommandLineHasFlags) {
  change("\"sequence_parallel\": false", "\"sequence_parallel\": true");
  change("\"attention\": \"flash\"",
         "\"attention\": \"flash\", \"reduce_scatter_with_fp32_accumulation\": true");
  EXPECT_EQ(
      problems(),
      "plan.json:16:26: /layout/sequence_parallel: needs tensor parallelism\n"
      "    leave it out, or use tp 2 or more\n"
      "plan.json:48:68: /job/reduce_scatter_with_fp32_accumulation: megatron_ddp cannot sum "
      "reduce-scatters of 16 bits in fp32\n"
      "plan.json:48:68: /job/reduce_scatter_with_fp32_accumulation: ZeRO stage 0 reduces "
      "without scattering\n"
      "    use zero_stage 1 or more\n"
      "plan.json:48:68: /job/reduce_scatter_with_fp32_accumulation: gradients are sent in fp32 "
      "already\n"
      "    use fp32_gradients false\n"
      "4 problems, nothing was run\n");
}

TEST_F(CheckPlan, NamesWhatRemaindersOfMainWeightsNeed) {
  change("\"offload_optimizer\": false",
         "\"offload_optimizer\": false, \"store_param_remainders\": true");
  change("\"precision\": \"bf16\"", "\"precision\": \"fp32\"");
  change("\"optimizer\": \"adamw\"", "\"optimizer\": \"sgd\"");
  EXPECT_EQ(
      problems(),
      "plan.json:20:59: /layout/store_param_remainders: megatron_ddp cannot keep main weights "
      "as 16-bit remainders\n"
      "plan.json:20:59: /layout/store_param_remainders: needs adamw, not sgd\n"
      "    use optimizer adamw\n"
      "plan.json:20:59: /layout/store_param_remainders: needs bf16 weights and fp32 main "
      "weights, not fp32 and fp32\n"
      "    use precision bf16 main_dtype fp32\n"
      "3 problems, nothing was run\n");
}

TEST_F(CheckPlan, PointsAtTheObjectThatLacksAKey) {
  change("    \"dp_shard\": 1,\n", "");
  change("\"dp_replicate\": 1", "\"dp_replicate\": 2");
  EXPECT_THAT(problems(), testing::StartsWith("plan.json:3:13: /layout/dp_shard: "));
}

TEST_F(CheckPlan, ChecksTheJobToo) {
  change("\"precision\": \"bf16\"", "\"precision\": \"fp8\"");
  change("\"recompute_operations\": []", "\"recompute_operations\": [\"mlp.up_pro\"]");
  EXPECT_EQ(problems(),
            "plan.json:42:18: /job/precision: cpu has no arithmetic in fp8\n"
            "    use bf16 or fp32\n"
            "plan.json:59:29: /job/recompute_operations: gpt2-tiny has no operation 'mlp.up_pro'\n"
            "    did you mean mlp.up_proj?\n"
            "2 problems, nothing was run\n");
}

// A bf16 job was timed as if its weights travelled in 8 bits.
TEST_F(CheckPlan, RefusesToGatherInFp8WhatIsComputedWider) {
  change("\"fp8_parameter_gather\": false", "\"fp8_parameter_gather\": true");
  EXPECT_EQ(problems(),
            "plan.json:43:29: /job/fp8_parameter_gather: needs precision fp8, not bf16\n"
            "    use precision fp8\n"
            "1 problem, nothing was run\n");
}

}  // namespace
}  // namespace shardwise
