#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/engines/engines.h"
#include "planner/spec/report/report_json.h"
#include "tests/cli/command.h"

// What `estimate --json` says of memory: for every engine, and for every flag that changes it.

namespace shardwise::cli {
namespace {

using enum MemoryCategory;
using enum MemoryPhase;
using Flags = std::vector<std::string>;

StepReport report_of(const std::string& engine, const Flags& more,
                     const std::string& model = "llama-3.1-8b") {
  Flags arguments = {
      "estimate", "--model",           model,  "--cluster", "dgx-h100", "--micro-batch-size",
      "2",        "--sequence-length", "8192", "--engine",  engine,     "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = shardwise(arguments);
  const Result<StepReport> report = report_from_text(outcome.out, "stdout");
  EXPECT_TRUE(report.ok()) << engine << ": " << outcome.err;
  if (!report.ok() || report->stages.empty()) {
    StepReport nothing;
    nothing.stages.resize(1);
    return nothing;
  }
  return *report;
}

TEST(EstimateJson, HasALedgerByPhaseAndCategoryForEveryEngineAndStage) {
  for (const std::string& name : engine_names()) {
    for (const int stage : find_engine(name)->zero_stages) {
      SCOPED_TRACE(name + ", ZeRO-" + std::to_string(stage));
      const StepReport report = report_of(name, {"--zero-stage", std::to_string(stage)});
      EXPECT_EQ(report.engine, name);
      EXPECT_EQ(report.layout.zero_stage, stage);
      const StageMemory& memory = report.stages.front();
      for (const Ledger& ledger : memory.phases) {
        EXPECT_EQ(ledger.total().value(),
                  std::accumulate(ledger.bytes.begin(), ledger.bytes.end(), std::int64_t{0}));
      }
      const Ledger& pass = memory[steady_forward_backward];
      EXPECT_GT(memory[after_init][weights] + memory[after_init][main_weights], 0);
      EXPECT_GT(pass[activations], 0);
      EXPECT_GT(pass[logits_and_loss], 0);
      EXPECT_GT(pass[communicator], 0);
      EXPECT_GT(pass[runtime_context], 0);
      EXPECT_GT(memory[steady_optimizer_step][optimizer_moments], 0);
      EXPECT_EQ(memory.peak_total(), report.verdict.point);
      EXPECT_GE(report.verdict.upper, report.verdict.point);
      EXPECT_TRUE(stage < 3 || pass[gathered_weights] > 0);
    }
  }
}

struct Change {
  const char* engine;
  Flags before;
  Flags more;  // besides `before`
  MemoryCategory category;
  MemoryPhase phase;
  double ratio;  // after / before; at most, where below 1; at least, where above
};

// One line a flag: what it is for, it does.
TEST(MemoryFlags, ChangeTheLedgerAsTheyShould) {
  const std::vector<Change> changes = {
      {"megatron_ddp", {}, {"--offload-optimizer"}, optimizer_moments, steady_optimizer_step, 0},
      {"megatron_ddp", {}, {"--offload-optimizer"}, main_weights, after_init, 0},
      {"deepspeed",
       {"--zero-stage", "2"},
       {"--offload-optimizer"},
       gradients,
       steady_optimizer_step,
       0},
      {"megatron_ddp", {}, {"--offload-activations"}, activations, steady_forward_backward, 0.1},
      {"megatron_ddp", {}, {"--recompute", "full"}, activations, steady_forward_backward, 0.2},
      {"megatron_ddp",
       {"--attention", "materialised"},
       {"--recompute", "selective"},
       activations,
       steady_forward_backward,
       0.5},
      {"megatron_ddp",
       {},
       {"--recompute-operations", "mlp.activation"},
       activations,
       steady_forward_backward,
       0.9},
      {"megatron_ddp",
       {},
       {"--attention", "materialised"},
       activations,
       steady_forward_backward,
       2},
      {"megatron_ddp",
       {},
       {"--loss", "materialised"},
       logits_and_loss,
       steady_forward_backward,
       0.61},
      {"megatron_ddp", {}, {"--precision", "fp8"}, weights, steady_forward_backward, 1.5},
      {"megatron_ddp", {}, {"--precision", "fp8"}, activations, steady_forward_backward, 0.9},
      {"megatron_ddp",
       {"--precision", "fp8"},
       {"--fp8-parameter-gather"},
       weights,
       steady_forward_backward,
       0.6},
      {"megatron_ddp",
       {"--precision", "fp8"},
       {"--fp8-recipe", "block"},
       activations,
       steady_forward_backward,
       1.001},
      {"megatron_ddp",
       {"--tp", "4", "--sequence-parallel", "false"},
       {"--sequence-parallel", "true"},
       activations,
       steady_forward_backward,
       0.7},
      {"megatron_ddp", {}, {"--fp32-gradients", "false"}, gradients, after_init, 0.5},
      {"megatron_ddp",
       {"--dp-shard", "8"},
       {"--dp-shard", "2", "--dp-replicate", "4"},
       optimizer_moments,
       steady_optimizer_step,
       3.9},
      {"megatron_ddp", {"--pp", "2"}, {"--first-stage-layers", "20"}, weights, after_init, 1.2},
      {"megatron_ddp", {}, {"--cp", "4"}, activations, steady_forward_backward, 0.26},
      {"megatron_ddp", {}, {"--deterministic"}, library_workspace, steady_forward_backward, 1},
      {"megatron_fsdp", {}, {"--main-dtype", "bf16"}, main_weights, after_init, 0},
      {"megatron_ddp",
       {},
       {"--moment-dtype", "bf16"},
       optimizer_moments,
       steady_optimizer_step,
       0.5},
      {"megatron_fsdp",
       {"--loss", "chunked"},
       {"--double-buffer"},
       gathered_weights,
       steady_forward_backward,
       0.9},
      {"megatron_fsdp",
       {"--dp-shard", "4", "--dp-replicate", "2"},
       {"--outer-shards-optimizer"},
       optimizer_moments,
       steady_optimizer_step,
       0.51},
      {"fsdp2",
       {},
       {"--reshard-after-forward", "false"},
       gathered_weights,
       steady_forward_backward,
       5},
      {"fsdp1", {}, {"--lora-targets", "none"}, optimizer_moments, steady_optimizer_step, 0},
      {"fsdp2",
       {"--pp", "4", "--dp-shard", "2", "--global-batch-size", "64"},
       {"--schedule", "gpipe"},
       activations_in_flight,
       steady_forward_backward,
       4},
  };
  for (const Change& c : changes) {
    Flags after = c.before;
    for (std::size_t i = 0; i < c.more.size(); i += 2) {
      // A flag that is given again takes the place of the first.
      const auto again = std::find(after.begin(), after.end(), c.more[i]);
      if (again != after.end()) after.erase(again, again + 2);
    }
    after.insert(after.end(), c.more.begin(), c.more.end());
    SCOPED_TRACE(std::string(c.engine) + " " + c.more.front() + ": " +
                 std::string(name_of(c.category)));
    const auto bytes = [&](const Flags& flags) {
      return static_cast<double>(report_of(c.engine, flags).stages.front()[c.phase][c.category]);
    };
    const double before = bytes(c.before);
    EXPECT_GT(before, 0);
    if (c.ratio < 1) {
      EXPECT_LE(bytes(after), c.ratio * before);
    } else {
      EXPECT_GE(bytes(after), c.ratio * before);
    }
  }
}

// Tied embeddings: one table on one stage, and a copy where the head is on another.
TEST(MemoryFlags, CopyATiedTableToTheLastStage) {
  const StepReport one = report_of("megatron_ddp", {}, "llama-3.2-1b");
  const StepReport two = report_of("megatron_ddp", {"--pp", "2"}, "llama-3.2-1b");
  ASSERT_EQ(two.stages.size(), 2U);
  const std::int64_t table = std::int64_t{128256} * 2048 * 2;
  EXPECT_EQ(two.stages[0][after_init][weights] + two.stages[1][after_init][weights],
            one.stages[0][after_init][weights] + table);
}

}  // namespace
}  // namespace shardwise::cli
