#include "planner/legality/legality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "planner/engines/engines.h"
#include "planner/legality/layout_rules.h"
#include "planner/spec/plan/plan_fields.h"
#include "tests/planner/legality/legality_sample.h"

namespace shardwise {
namespace {

using test::Sample;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CheckLayout, AcceptsWhatDivides) { EXPECT_THAT(Sample().problems(), IsEmpty()); }

TEST(CheckLayout, NamesEveryReasonAtOnce) {
  Sample s;
  s.set("tp", "3");
  s.set("zero_stage", "2");
  EXPECT_THAT(
      s.problems(),
      ElementsAre(
          "--tp: tp 3 x cp 1 x pp 2 is 6, which does not divide 64 GPUs (their product must "
          "divide 64)",
          "--tp: 3 does not divide 32 attention heads (use 1 or 2)",
          "--tp: 3 neither divides 8 key and value heads nor is a multiple (use 1 or 2)",
          "--tp: 3 does not divide the widths of the layers, whose greatest common divisor "
          "is 1024 (use 1 or 2)",
          "--zero-stage: sample has no ZeRO stage 2 (use 0 or 1 or 3)"));
}

TEST(CheckLayout, BlamesTheDegreeThatDoesNotDivideTheGpus) {
  for (const char* degree : {"tp", "cp", "pp"}) {
    Sample s;
    for (const char* each : {"tp", "cp", "pp"}) s.set(each, "1");
    s.set(degree, "3");
    EXPECT_THAT(s.problems().front(), testing::StartsWith(std::string("--") + degree + ": tp"));
  }
  Sample s;
  s.set("dp_shard", "4");
  EXPECT_THAT(s.problems().front(), testing::StartsWith("--dp-shard: tp"));
}

TEST(CheckLayout, RefusesDegreesBelowOneBeforeItDivides) {
  Sample s;
  s.layout.tp = 0;
  EXPECT_THAT(s.problems(),
              ElementsAre("--tp: a degree, micro-batch, interval or stage size is below its "
                          "minimum (use 1 or more)"));
}

TEST(CheckLayout, RefusesABatchThatDoesNotReachOrDivide) {
  Sample s;
  s.job.global_batch_size = 4;
  EXPECT_THAT(s.problems(),
              ElementsAre("--global-batch-size: 4 sequences are fewer than dp 8 x micro_batch_size "
                          "1 (use 8 or more, or fewer data-parallel ranks)",
                          "--micro-batch-size: dp 8 x micro_batch_size 1 does not divide 4 "
                          "sequences (use a global batch of a multiple of 8)"));
  s.job.global_batch_size = 20;
  EXPECT_THAT(s.problems(),
              ElementsAre("--micro-batch-size: dp 8 x micro_batch_size 1 does not "
                          "divide 20 sequences (use a global batch of a multiple of 8)"));
}

TEST(CheckLayout, RefusesPipelinesThatCannotRun) {
  Sample s;
  s.set("vpp", "18");
  s.set("schedule", "gpipe");
  s.engine.schedules.push_back(PipelineSchedule::gpipe);
  EXPECT_THAT(s.problems(),
              ElementsAre("--vpp: 18 chunks a stage, but the schedule is gpipe (use 1, or schedule "
                          "one_f_one_b or looped_bfs)",
                          "--pp: 32 blocks are too few for 2 stages of 18 chunks (use --pp 1 or "
                          "less)"));
  s = Sample();
  s.set("vpp", "2");
  s.job.global_batch_size = 24;
  EXPECT_THAT(
      s.problems(),
      ElementsAre("--vpp: interleaving needs a multiple of pp 2, the batch has 3 "
                  "micro-batches (use vpp 1, or a global batch of a multiple of 16 sequences)"));
  s = Sample();
  s.set("first_stage_layers", "31");
  EXPECT_THAT(s.problems(), IsEmpty());
  s.set("last_stage_layers", "2");
  EXPECT_THAT(s.problems(), ElementsAre("--first-stage-layers: first stage 31 and last stage 2 "
                                        "leave -1 of 32 blocks to 0 stages of 1 chunks"));
}

TEST(CheckLayout, RefusesContextParallelismThatDoesNotCut) {
  Sample s;
  s.set("cp", "8");
  s.set("dp_shard", "1");
  EXPECT_THAT(s.problems(), IsEmpty());
  s.job.sequence_length = 8200;
  EXPECT_THAT(s.problems(),
              ElementsAre("--cp: sequence length 8200 is not a multiple of 2 x 8 (use 1, 2, 4 or "
                          "5)"));
  s.set("cp_kind", "ulysses");
  EXPECT_THAT(s.problems(), IsEmpty());
  s.set("cp_kind", "ring");
  s.job.sequence_length = 8192;
  s.job.attention = AttentionKernel::materialised;
  EXPECT_THAT(s.problems(),
              ElementsAre("--cp-kind: ring attention needs flash or cuDNN's attention in 16 bits "
                          "(use all_gather or ulysses)"));
}

TEST(CheckLayout, TakesARingOfFlashOrCudnnsAttention) {
  Sample s;
  s.set("cp", "8");
  s.set("dp_shard", "1");
  for (const AttentionKernel kernel : {AttentionKernel::flash, AttentionKernel::cudnn}) {
    s.job.attention = kernel;
    s.job.precision = DType::bf16;
    EXPECT_THAT(s.problems(), IsEmpty());
    s.job.precision = DType::fp32;
    EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--cp-kind: ring attention needs")));
  }
  s.job.precision = DType::bf16;
  s.job.attention = AttentionKernel::flash1;
  EXPECT_THAT(s.problems(), ElementsAre(HasSubstr("--cp-kind: ring attention needs")));
}

TEST(CheckLayout, SaysOfAnOffloadThatItIsNotModelled) {
  for (const char* engine : {"fsdp1", "fsdp2", "megatron_deepspeed"}) {
    Sample s;
    s.engine = *find_engine(engine);
    s.set("offload_optimizer", "true");
    EXPECT_THAT(s.problems(),
                Contains(std::string("--offload-optimizer: optimizer states in host memory are not "
                                     "modelled under ") +
                         engine + " (use --engine deepspeed or megatron_ddp)"));
  }
}

TEST(CheckLayout, RefusesExpertsWhereThereAreNone) {
  Sample s;
  s.set("ep", "2");
  EXPECT_THAT(s.problems(), ElementsAre("--ep: llama has no routed experts (use 1)"));
}

TEST(CheckLayout, RefusesExpertDegreesAndIntervalsThatWouldDivideByNothing) {
  Sample s;
  s.layout.etp = 4;
  EXPECT_THAT(s.problems(), ElementsAre("--etp: llama has no routed experts (use 1)"));
  Sample interval;
  interval.layout.recompute_interval = 0;
  EXPECT_THAT(interval.problems(), ElementsAre(HasSubstr("interval or stage size")));
}

TEST(CheckLayout, RefusesWhatMegatronsDdpRefuses) {
  Sample s;
  s.engine = *find_engine("megatron_ddp");
  s.set("overlap_grad_reduce", "false");
  EXPECT_THAT(s.problems(),
              ElementsAre("--overlap-param-gather: needs --overlap-grad-reduce under Megatron "
                          "(NVIDIA/Megatron-LM@d98e8a64:megatron/training/arguments.py:1028) (use "
                          "--overlap-param-gather=false, or overlap both)"));
  s.set("overlap_param_gather", "false");
  EXPECT_THAT(s.problems(), IsEmpty());
  s.set("zero_stage", "0");
  s.set("overlap_param_gather", "true");
  EXPECT_THAT(s.problems(), IsEmpty()) << "nothing is gathered";
  s.job.precision = DType::fp8;
  s.job.fp8_parameter_gather = true;
  EXPECT_THAT(s.problems(), Contains(HasSubstr("--fp8-parameter-gather: needs Megatron's "
                                               "distributed optimizer")));
}

TEST(CheckLayout, RefusesSizesOfBucketsThatTheEngineDoesNotTake) {
  Sample s;
  s.engine = *find_engine("megatron_fsdp");
  s.set("zero_stage", "3");
  s.set("ddp_bucket_size", "10000000");
  EXPECT_THAT(s.problems(), ElementsAre("--ddp-bucket-size: megatron_fsdp cannot be told the size "
                                        "of its buckets"));
  s.set("ddp_bucket_size", "0");
  s.set("ddp_pad_buckets_for_high_nccl_busbw", "true");
  EXPECT_THAT(s.problems(), ElementsAre("--ddp-pad-buckets-for-high-nccl-busbw: megatron_fsdp "
                                        "cannot pad its buckets to 65,536 elements"));
  s.engine = *find_engine("megatron_ddp");
  s.set("zero_stage", "1");
  s.set("ddp_bucket_size", "10000000");
  EXPECT_THAT(s.problems(), IsEmpty());
}

TEST(LayoutRules, HaveNamesOfTheirOwnAndWordsUnlessRedundant) {
  std::set<std::string_view> ids;
  for (const LayoutRule& rule : layout_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_NE(rule.broken, nullptr) << rule.id;
    EXPECT_EQ(rule.say == nullptr, rule.redundant) << rule.id;
  }
}

// A search that drops a subtree by a rule relies on this.
TEST(LayoutRules, LookAtNoFieldsButThoseTheyName) {
  const std::map<std::string, std::uint32_t> bits = {
      {"tp", kReadsTp},
      {"cp", kReadsCp},
      {"pp", kReadsPp},
      {"vpp", kReadsVpp},
      {"first_stage_layers", kReadsStageLayers},
      {"last_stage_layers", kReadsStageLayers},
      {"ep", kReadsEp},
      {"etp", kReadsEtp},
      {"dp_shard", kReadsDp | kReadsDpTotal},
      {"dp_replicate", kReadsDp | kReadsDpTotal},
      {"micro_batch_size", kReadsMicroBatch},
      {"zero_stage", kReadsZeroStage},
      {"sequence_parallel", kReadsSequenceParallel},
      {"outer_shards_optimizer", kReadsOuter},
      {"reshard_after_forward", kReadsReshard},
      {"reduce_every_microbatch", kReadsReduce},
      {"offload_optimizer", kReadsOffloadOptimizer},
      {"store_param_remainders", kReadsRemainders},
      {"offload_activations", kReadsOffloadActivations},
      {"double_buffer", kReadsDoubleBuffer},
      {"fp32_gradients", kReadsGradients},
      {"overlap_grad_reduce", kReadsOverlap},
      {"overlap_param_gather", kReadsOverlap},
      {"ddp_bucket_size", kReadsBuckets},
      {"ddp_pad_buckets_for_high_nccl_busbw", kReadsBuckets},
      {"recompute", kReadsRecompute},
      {"schedule", kReadsSchedule},
      {"cp_kind", kReadsCpKind},
  };
  const std::map<std::string, std::vector<std::string>> values = {
      {"recompute", {"none", "selective", "full"}},
      {"schedule",
       {"one_f_one_b", "gpipe", "looped_bfs", "zb_h1", "zb_h2", "zb_v", "dualpipe", "dualpipe_v"}},
      {"cp_kind", {"ring", "all_gather", "ulysses"}},
      {"reshard_after_forward", {"true", "false", "2", "3", "8"}},
      {"zero_stage", {"0", "1", "2", "3"}}};

  Sample sample;
  std::mt19937 random(1);
  const auto pick = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  const auto change = [&](Layout& layout, const std::string& key) {
    const auto named = values.find(key);
    std::string text = std::to_string(1 + pick(9));
    if (named != values.end()) text = named->second[pick(named->second.size())];
    const std::string now = field_text(layout, key);
    const bool is_switch = named == values.end() && (now == "true" || now == "false");
    if (is_switch) text = pick(2) == 0 ? "true" : "false";
    EXPECT_EQ(set_field(layout, key, text), "") << key;
  };
  std::set<std::string_view> seen_broken;
  for (int seed = 0; seed < 400; ++seed) {
    sample.model.num_experts = pick(2) == 0 ? 0 : 8;
    sample.job.attention = pick(2) == 0 ? AttentionKernel::flash : AttentionKernel::materialised;
    sample.job.global_batch_size = static_cast<std::int64_t>(pick(200));
    sample.engine.outer_shards_optimizer = pick(2) == 0;
    sample.engine.hybrid = pick(2) == 0;
    sample.engine.param_remainders = pick(2) == 0;
    sample.job.optimizer = pick(2) == 0 ? Optimizer::adamw : Optimizer::sgd;
    sample.job.main_dtype = pick(2) == 0 ? DType::fp32 : DType::bf16;
    sample.engine.gradient_buffer =
        pick(2) == 0 ? GradientBuffer::contiguous : GradientBuffer::unit_queue;
    sample.job.precision = pick(2) == 0 ? DType::bf16 : DType::fp8;
    sample.job.fp8_parameter_gather = pick(2) == 0;
    sample.engine.pipeline = pick(2) == 0;
    sample.engine.gather = std::array{GatherBuffer::copy_out, GatherBuffer::in_place,
                                      GatherBuffer::element_queue}[pick(3)];
    sample.engine.keeps_parts_over_step = pick(2) == 0;
    sample.engine.whole_moments_early = pick(2) == 0;
    sample.engine.kernels = pick(2) == 0 ? Kernels::transformer_engine : Kernels::eager;
    sample.engine.narrow_states = pick(2) == 0;
    sample.engine.bf16_main_weights = pick(2) == 0;
    sample.engine.experts_split_apart = pick(2) == 0;
    sample.engine.tied_head = pick(2) == 0;
    sample.engine.fp16 = pick(2) == 0;
    sample.job.tp_overlap = pick(2) == 0 ? TpOverlap::pipelined : TpOverlap::by_engine;
    sample.job.deterministic = pick(2) == 0;
    sample.job.expert_overlap = pick(2) == 0;
    const LayoutQuestion question =
        layout_question(sample.model, sample.cluster, sample.job, sample.engine);
    Layout layout;
    for (const auto& [key, bit] : bits) change(layout, key);
    for (const LayoutRule& rule : layout_rules()) {
      if (rule.reads == kReadsNothing) continue;
      const bool broken = rule.broken(question, layout);
      if (broken) seen_broken.insert(rule.id);
      Layout other = layout;
      for (const auto& [key, bit] : bits) {
        if ((rule.reads & bit) == 0) change(other, key);
      }
      ASSERT_EQ(rule.broken(question, other), broken) << rule.id << " in round " << seed;
    }
  }
  EXPECT_GE(seen_broken.size(), layout_rules().size() * 3 / 4);
}

}  // namespace
}  // namespace shardwise
