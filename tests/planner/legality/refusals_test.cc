#include "planner/legality/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "planner/engines/engines.h"
#include "planner/legality/layout_rules.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/reader.h"
#include "tests/planner/legality/legality_sample.h"

namespace shardwise {
namespace {

using test::Sample;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What is refused of flags as they are typed, and not of plans.
const std::set<std::string_view> kOfFlags = {"param_gather_of_replicas",
                                             "fused_accumulation_of_fsdp2",
                                             "transformer_engine_loss", "positions"};

TEST(EngineRefusals, AreOfRulesAndOfEnginesThatThereAre) {
  for (const EngineRefusal& each : engine_refusals()) {
    const bool is_rule = std::ranges::any_of(
        layout_rules(), [&](const LayoutRule& rule) { return rule.id == each.rule; });
    EXPECT_TRUE(is_rule || kOfFlags.contains(each.rule)) << each.rule;
    for (const std::string& engine : each.engines) EXPECT_NE(find_engine(engine), nullptr);
  }
}

// The engines' own code was run: tests/golden/engine_refusals.py.
TEST(EngineRefusals, StandWhereTheEnginesThemselvesRefused) {
  const Result<JsonValue> golden = read_json("tests/golden/engine_refusals.json");
  ASSERT_TRUE(golden.ok());
  std::set<std::string> left;
  const auto key = [](const std::string& rule, const std::string& engine) {
    return rule + " of " + engine;
  };
  for (const EngineRefusal& each : engine_refusals()) {
    for (const std::string& engine : each.engines) left.insert(key(each.rule, engine));
  }
  for (const JsonValue& row : golden->find("refusals")->elements) {
    const std::string& rule = row.find("rule")->string;
    const std::string& engine = row.find("engine")->string;
    const EngineRefusal* refusal = engine_refusal(engine, rule);
    ASSERT_NE(refusal, nullptr) << key(rule, engine);
    EXPECT_EQ(refusal->at, row.find("at")->string) << key(rule, engine);
    left.erase(key(rule, engine));
  }
  EXPECT_THAT(left, IsEmpty()) << "nobody asked: run tests/golden/engine_refusals.py";
}

TEST(RefusalClause, NamesCodeAndLineOrIsEmpty) {
  EXPECT_EQ(refusal_clause("fsdp2_in_megatron", "engine_pp"),
            " (NVIDIA/Megatron-LM@d98e8a64:megatron/training/arguments.py:1034)");
  EXPECT_EQ(refusal_clause("fsdp1", "engine_pp"), "") << "FSDP1 has none that could refuse";
}

TEST(CheckLayout, RefusesAdamwOfBitsandbytesWhereItHasNoPlainTensors) {
  Sample s;
  s.job.adamw = AdamwKernel::paged_8bit;
  s.engine = *find_engine("megatron_ddp");
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--adamw: paged_8bit is bitsandbytes', which is "
                                                  "not modelled under megatron_ddp")));
  s.engine = *find_engine("fsdp1");
  s.set("pp", "1");
  s.set("tp", "1");
  s.set("dp_shard", "64");
  s.set("zero_stage", "3");
  EXPECT_THAT(s.problems(), IsEmpty());
  s.job.moment_dtype = DType::bf16;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--moment-dtype: bf16 with --adamw paged_8bit")));
  s.job.moment_dtype = DType::fp32;
  s.job.optimizer = Optimizer::sgd;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("and --optimizer sgd is another optimizer")));
}

// tests/golden/engine_refusals.py has what Megatron-LM itself says.
TEST(CheckLayout, RefusesOptimizerStatesThatMegatronsOptimizersDoNotHave) {
  Sample s;
  s.engine = *find_engine("megatron_ddp");
  s.job.main_dtype = DType::fp16;
  s.job.moment_dtype = DType::bf16;
  EXPECT_THAT(s.problems(), IsEmpty());
  s.set("zero_stage", "0");
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--main-dtype: needs Megatron's distributed")));
  s.set("zero_stage", "1");
  s.job.optimizer = Optimizer::sgd;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--main-dtype: needs adamw under Megatron")));
  s.job.optimizer = Optimizer::adamw;
  s.job.main_dtype = DType::bf16;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--main-dtype: megatron_ddp has no bf16")));
  s.engine = *find_engine("megatron_fsdp");
  EXPECT_THAT(s.problems(), IsEmpty());
  s.engine = *find_engine("fsdp2_in_megatron");
  s.set("pp", "1");
  s.set("dp_shard", "16");
  s.set("zero_stage", "3");
  EXPECT_THAT(
      s.problems(),
      ElementsAre(HasSubstr("--main-dtype: fsdp2_in_megatron has optimizer states in fp32")));
  // Our executor has the engine's buffers and an optimizer of its own.
  s = Sample();
  s.engine = *find_engine("megatron_ddp");
  s.job.main_dtype = DType::bf16;
  s.job.kernels = Kernels::planned;
  EXPECT_THAT(s.problems(), IsEmpty());
}

TEST(CheckLayout, RefusesOffloadThatMegatronsOptimizersDoNotHave) {
  Sample s;
  s.engine = *find_engine("megatron_ddp");
  s.set("offload_optimizer", "true");
  EXPECT_THAT(s.problems(), IsEmpty());
  s.job.precision = DType::fp8;
  s.job.fp8_parameter_gather = true;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--offload-optimizer: with --fp8-parameter")));
  s.job.fp8_recipe = Fp8Recipe::delayed;
  EXPECT_THAT(s.problems(), IsEmpty());
  s.job.fp8_parameter_gather = false;
  s.set("zero_stage", "0");
  EXPECT_THAT(
      s.problems(),
      ElementsAre(HasSubstr("--offload-optimizer: needs Megatron's distributed optimizer")));
}

TEST(CheckLayout, RefusesKernelsThatMegatronDoesNotCombine) {
  Sample s;
  s.engine = *find_engine("megatron_ddp");
  s.set("sequence_parallel", "true");
  s.job.tp_overlap = TpOverlap::pipelined;
  s.job.loss = LossKernel::fused_fp32;
  EXPECT_THAT(s.problems(), IsEmpty());
  s.job.deterministic = true;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--loss: fused_fp32 is fused, which Megatron")));
  s.job.loss = LossKernel::by_engine;
  s.job.tp_overlap = TpOverlap::by_engine;
  EXPECT_THAT(s.problems(), IsEmpty()) << "the default is what runs";
  s.job.deterministic = false;
  s.job.tp_overlap = TpOverlap::pipelined;
  s.set("sequence_parallel", "false");
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--tp-overlap: pipelined needs sequence")));
}

TEST(CheckLayout, RefusesExpertsThatDeepSpeedDoesNotSplit) {
  Sample s;
  s.model.num_experts = 8;
  s.engine = *find_engine("deepspeed");
  s.layout = {};
  s.layout.sequence_parallel = true;
  s.layout.tp = 4;
  s.layout.dp_shard = 16;
  s.layout.zero_stage = 2;
  s.layout.etp = 2;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--etp: 2: deepspeed splits experts as the")));
  s.layout.etp = 4;
  s.layout.ep = 2;
  EXPECT_THAT(s.problems(), IsEmpty());
  s.layout.zero_stage = 3;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("deepspeed splits experts over ep alone")));
  s.layout.etp = 1;
  EXPECT_THAT(s.problems(), IsEmpty());
}

// Each raises an error of its own where the table of positions ends: an index beyond it.
TEST(CheckPositions, RefusesMoreTokensThanALearnedTableHasPositions) {
  const ModelSpec gpt2 = *load_model("gpt2");
  JobSpec job;
  for (const std::string& engine : engine_names()) {
    job.sequence_length = 1024;
    EXPECT_THAT(check_positions(gpt2, job, *find_engine(engine)), IsEmpty()) << engine;
    job.sequence_length = 1025;
    const Diagnostics problems = check_positions(gpt2, job, *find_engine(engine));
    ASSERT_EQ(problems.size(), 1U) << engine;
    EXPECT_THAT(problems.front().message,
                HasSubstr("1025 tokens, but gpt2 has a table of 1024 positions"));
    EXPECT_EQ(problems.front().hint, "use 1024 or less");
  }
}

TEST(CheckPositions, CountsThePositionsOfATableWithoutTheRowsInFrontOfThem) {
  EXPECT_EQ(learned_positions(*load_model("opt-125m")), 2048);
  EXPECT_EQ(learned_positions(*load_model("bert-base-uncased")), 512);
  EXPECT_EQ(learned_positions(*load_model("llama-3.1-8b")), 0);
  EXPECT_EQ(learned_positions(*load_model("mpt-7b")), 0) << "ALiBi has none";
}

}  // namespace
}  // namespace shardwise
