#include <array>
#include <string>

#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

struct Job {
  const char* name;
  void (*change)(Plan&);
};
// Little compute beside the same traffic, much of it, other dtypes and other operations.
constexpr std::array<Job, 11> kJobs = {{
    {"short sequences", [](Plan& plan) { plan.job.sequence_length = 512; }},
    {"short sequences, many micro-batches",
     [](Plan& plan) {
       plan.job.sequence_length = 512;
       plan.job.global_batch_size = 256;
     }},
    {"long sequences", [](Plan& plan) { plan.job.sequence_length = 16384; }},
    {"fp32", [](Plan& plan) { plan.job.precision = DType::fp32; }},
    {"fp8, gathered so",
     [](Plan& plan) {
       plan.job.precision = DType::fp8;
       plan.job.fp8_parameter_gather = true;
     }},
    {"hidden exchange of experts", [](Plan& plan) { plan.job.expert_overlap = true; }},
    {"loss per token", [](Plan& plan) { plan.job.calculate_per_token_loss = true; }},
    {"sums in fp32", [](Plan& plan) { plan.job.reduce_scatter_with_fp32_accumulation = true; }},
    {"frozen weights", [](Plan& plan) { plan.job.frozen_base = true; }},
    {"frozen tied tables",
     [](Plan& plan) {
       plan.job.frozen_base = true;
       plan.model = *load_model("llama-3.2-1b");
     }},
    {"one micro-batch", [](Plan& plan) { plan.job.global_batch_size = 0; }},
}};

// Under every engine, whatever the job asks of it, on one stage and in pipelines.
TEST(SimulatedLayouts, AreNearTheClosedFormUnderOtherJobs) {
  SeedsOfEngines seeds(20261126);
  Apart apart;
  for (const Job& job : kJobs) {
    SCOPED_TRACE(job.name);
    const int before = apart.drawn();
    for (const bool experts : {false, true}) {
      for (const std::string& engine : engine_names()) {
        Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
        job.change(plan);
        draw(plan, 500, seeds.next(engine), [&](const Plan& drawn) {
          const Layout& layout = drawn.layout;
          if (layout.pp > 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) return;
          if (is_itself(drawn)) apart.expect_near(drawn);
        });
        const auto as_drawn = [](Layout&) {};
        draw_pipelines(
            plan, 2, seeds.next(engine), as_drawn,
            [&](const Plan& drawn) { apart.expect_near(drawn); }, 100'000);
      }
    }
    EXPECT_GT(apart.drawn(), before + 5 / drawn_of());
  }
  apart.expect_drawn(0);
}

/// What a command line asks, without hosts and with everything as if alone.
Plan asked(const char* model, const char* cluster, std::int64_t gpus, const char* engine) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster(cluster), gpus);
  plan.engine = *find_engine(engine);
  plan.job.sequence_length = 4096;
  return plan;
}

// (D4) A tied table that is frozen has no gradients for two stages to sum.
TEST(SimulatedLayouts, AreNearTheClosedFormWithFrozenTiedTables) {
  Plan plan = asked("llama-3.2-1b", "dgx-h100", 8, "megatron_ddp");
  plan.job.sequence_length = 4096;
  plan.job.global_batch_size = 32;
  plan.job.frozen_base = true;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 4;
  plan.layout.zero_stage = 1;
  EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 0.005);

  plan = asked("gemma-2b", "aws-p4d", 128, "megatron_deepspeed");
  plan.job.sequence_length = 512;
  plan.job.frozen_base = true;
  plan.layout.tp = 8;
  plan.layout.pp = 16;
  EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 0.005);
}

// (D4) Frozen weights have no gradients: 4 FLOPs a weight and token.
TEST(Utilisation, OfFrozenWeightsIsBelowTheWhole) {
  Plan plan = asked("gpt3-175b", "dgx-a100", 16, "internevo");
  plan.job.sequence_length = 2048;
  plan.job.frozen_base = true;
  plan.layout.dp_shard = 16;
  plan.layout.zero_stage = 3;
  plan.layout.micro_batch_size = 4;
  const StepReport report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  EXPECT_LT(report.mfu, 0.87);  // what an A100 holds of its peak in matrix products
  plan.job.frozen_base = false;
  const StepReport trained = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  EXPECT_LT(report.model_flops.value(), 0.70 * trained.model_flops.value());
  EXPECT_GT(report.model_flops.value(), 0.66 * trained.model_flops.value());
}

// Model FLOPs are at most those executed, and these at most what the GPUs could do.
TEST(Utilisation, IsAtMostTheWhole) {
  SeedsOfEngines seeds(20261127);
  int drawn = 0;
  for (const Job& job : kJobs) {
    for (const bool experts : {false, true}) {
      for (const std::string& engine : engine_names()) {
        Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
        job.change(plan);
        draw(plan, 20, seeds.next(engine), [&](const Plan& each) {
          const StepReport report =
              estimate(each.model, each.cluster, each.job, each.engine, each.layout);
          EXPECT_LE(report.mfu, report.hfu) << job.name << test::text_of(each.layout);
          EXPECT_LE(report.hfu, 1) << job.name << test::text_of(each.layout);
          ++drawn;
        });
      }
    }
  }
  EXPECT_GT(drawn, 2000 / drawn_of());
}

// (D5) Experts that a rank has for itself move no gradients: nothing of theirs waits for a sum.
TEST(SimulatedLayouts, AreNearTheClosedFormWithSumsInFp32OfExpertsOfOneRank) {
  Plan plan = asked("qwen2-57b-a14b", "meta-h100", 32, "megatron_ddp");
  plan.job.sequence_length = 4096;
  plan.job.reduce_scatter_with_fp32_accumulation = true;
  plan.layout.tp = 2;
  plan.layout.sequence_parallel = true;
  plan.layout.ep = 16;
  plan.layout.etp = 2;
  plan.layout.dp_shard = 16;
  plan.layout.zero_stage = 1;
  plan.layout.fp32_gradients = false;
  EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 0.005);
}

// Groups of experts fold over tp where etp is smaller: their gradients are summed over several
// ranks even where dense parameters have no copy.
TEST(SimulatedLayouts, AreNearTheClosedFormWhereExpertsAloneAreDataParallel) {
  for (const auto& [engine, zero_stage] :
       {std::pair("fsdp2", 3), std::pair("deepspeed", 1), std::pair("deepspeed", 2),
        std::pair("internevo", 3), std::pair("megatron_fsdp", 1), std::pair("megatron_fsdp", 3),
        std::pair("shardwise", 2), std::pair("megatron_ddp", 1)}) {
    Plan plan = asked("gpt-oss-20b", "dgx-h200", 8, engine);
    plan.job.sequence_length = 1024;
    plan.job.global_batch_size = 4;
    plan.layout.tp = 8;
    plan.layout.sequence_parallel = true;
    plan.layout.zero_stage = static_cast<std::int8_t>(zero_stage);
    plan.layout.reduce_every_microbatch = plan.engine.reduce_every_microbatch;
    plan.layout.fp32_gradients = plan.engine.fp32_gradients_default;
    EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 0.005) << engine << " ZeRO-" << zero_stage;
  }
}

// Stages in the middle that have a layer more end later than those at the ends.
TEST(SimulatedLayouts, AreNearTheClosedFormWhereStagesInTheMiddleDiffer) {
  Plan plan = asked("deepseek-v2-lite", "aws-p4de", 128, "megatron_ddp");
  plan.job.global_batch_size = 8;
  plan.layout.tp = 2;
  plan.layout.cp = 2;
  plan.layout.pp = 8;
  plan.layout.etp = 2;
  plan.layout.dp_shard = 4;
  plan.layout.sequence_parallel = true;
  EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 0.005);
}

// Recompute takes the first of every three layers of a stage: two of four.
TEST(SimulatedLayouts, AreNearTheClosedFormWhereSomeLayersRunAgain) {
  Plan plan = asked("llama-7b", "aws-p4de", 32, "megatron_ddp");
  plan.job.global_batch_size = 128;
  plan.layout.pp = 8;
  plan.layout.dp_shard = 4;
  plan.layout.micro_batch_size = 4;
  plan.layout.recompute = Recompute::full;
  for (const int interval : {1, 2, 3, 4, 32}) {
    plan.layout.recompute_interval = interval;
    EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 0.005) << interval;
  }
}

// (D5) The only micro-batch is the last one: it reduces, whatever the flag says.
TEST(SimulatedLayouts, AreNearTheClosedFormInPipelinesOfOneMicrobatchThatReduceOnce) {
  Plan plan = asked("mistral-7b-v0.1", "oci-a100", 32, "shardwise");
  plan.job.sequence_length = 512;
  plan.layout.tp = 8;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 2;
  plan.layout.zero_stage = 2;
  plan.layout.reduce_every_microbatch = false;
  for (const int batch : {0, 16}) {
    plan.job.global_batch_size = batch;
    EXPECT_NEAR(simulated(plan) / unslowed(plan), 1, 0.005) << batch;
  }
}

}  // namespace
}  // namespace shardwise::sim
