#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <sstream>

#include "planner/cost/memory/memory_terms.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

/// The left side of "3 x 1,024 + 7 = 3,079 B (3.01 KiB)", worked out by whoever reads the line.
std::int64_t evaluate_sum(const std::string& values) {
  std::istringstream words(values.substr(0, values.find(" = ")));
  std::int64_t sum = 0;
  std::int64_t product = 1;
  for (std::string word; words >> word;) {
    if (word == "x") continue;
    if (word == "+") {
      sum += product;
      product = 1;
      continue;
    }
    std::erase(word, ',');
    product *= std::stoll(word);
  }
  return sum + product;
}

struct ExplainedCase {
  std::string name;
  std::string engine;
  ModelSpec model;
  Layout layout;
  JobSpec job;
};

std::vector<ExplainedCase> cases() {
  JobSpec many;
  many.global_batch_size = 64;
  JobSpec dense;
  dense.attention = AttentionKernel::materialised;
  dense.loss = LossKernel::materialised;
  dense.dropout = 0.1;
  JobSpec lora;
  lora.frozen_base = true;
  JobSpec again;
  again.recompute_operations = {"mlp.act", "self_attn.core"};
  JobSpec narrow;
  narrow.precision = DType::fp8;
  narrow.fp8_recipe = Fp8Recipe::block;
  JobSpec kept = narrow;
  kept.fp8_parameter_gather = true;
  const ModelSpec llama = test::llama_3_1_8b();
  const ModelSpec experts = test::mixture(4, 1024, 8, 8, 2, 2048, 1024);
  return {
      {"ddp", "megatron_ddp", llama, {.dp_shard = 8}, {}},
      {"distributed optimizer, tp, pp",
       "megatron_ddp",
       llama,
       {.tp = 2,
        .pp = 4,
        .dp_shard = 4,
        .micro_batch_size = 2,
        .zero_stage = 1,
        .sequence_parallel = true},
       many},
      {"interleaved with recompute",
       "megatron_ddp",
       llama,
       {.pp = 4, .vpp = 2, .dp_shard = 4, .zero_stage = 1, .recompute = Recompute::full},
       many},
      {"experts", "megatron_ddp", experts, {.ep = 4, .dp_shard = 8, .zero_stage = 1}, {}},
      {"materialised", "megatron_ddp", test::gpt(12, 768, 12, 50304), {.dp_shard = 8}, dense},
      {"queues", "megatron_fsdp", llama, {.dp_shard = 8, .zero_stage = 3}, {}},
      {"double buffer",
       "megatron_fsdp",
       llama,
       {.dp_shard = 8, .zero_stage = 3, .double_buffer = true},
       {}},
      {"HFSDP",
       "megatron_fsdp",
       llama,
       {.dp_shard = 4, .dp_replicate = 2, .zero_stage = 3, .outer_shards_optimizer = true},
       {}},
      {"copies", "fsdp2", llama, {.dp_shard = 8, .micro_batch_size = 2, .zero_stage = 3}, {}},
      {"gathered once",
       "fsdp2",
       llama,
       {.dp_shard = 8, .zero_stage = 3, .reshard_after_forward = false},
       {}},
      {"operations again", "fsdp2", llama, {.dp_shard = 8, .zero_stage = 3}, again},
      {"in megatron", "fsdp2_in_megatron", llama, {.dp_shard = 8, .zero_stage = 3}, {}},
      {"GPipe",
       "fsdp2",
       llama,
       {.pp = 2, .dp_shard = 4, .zero_stage = 3, .schedule = PipelineSchedule::gpipe},
       many},
      {"FSDP1", "fsdp1", llama, {.dp_shard = 8, .zero_stage = 3}, {}},
      {"adapters", "fsdp1", llama, {.dp_shard = 8, .zero_stage = 3}, lora},
      {"ZeRO-3", "deepspeed", llama, {.dp_shard = 8, .zero_stage = 3}, {}},
      {"ZeRO-2 offload",
       "deepspeed",
       llama,
       {.dp_shard = 8, .zero_stage = 2, .offload_optimizer = true},
       {}},
      {"activations on the host",
       "megatron_ddp",
       llama,
       {.dp_shard = 8, .zero_stage = 1, .offload_activations = true},
       {}},
      {"8 bits", "megatron_ddp", llama, {.dp_shard = 8, .zero_stage = 1}, narrow},
      {"kept in 8 bits", "megatron_ddp", llama, {.dp_shard = 8, .zero_stage = 1}, kept},
      {"queued in 8 bits", "megatron_fsdp", llama, {.dp_shard = 8, .zero_stage = 3}, kept},
      {"gathered in 8 bits", "fsdp2", llama, {.dp_shard = 8, .zero_stage = 3}, kept},
      {"arena", "shardwise", llama, {.dp_shard = 8, .zero_stage = 3}, {}},
      {"flat gradients",
       "megatron_deepspeed",
       test::gpt(24, 2048, 16, 50304),
       {.tp = 2, .pp = 2, .dp_shard = 4, .zero_stage = 1},
       many},
      {"scratch of the step", "internevo", llama, {.dp_shard = 8, .zero_stage = 1}, {}},
  };
}

StepReport explained(const ExplainedCase& c) {
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), c.layout.world());
  return estimate(c.model, cluster, c.job, *find_engine(c.engine), c.layout, Detail::explained);
}

// "Every number can answer why": the line of a category works out to the ledger's bytes.
TEST(MemoryExplanation, WorksOutToTheLedgerToTheByteForEveryCategory) {
  for (const ExplainedCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const StepReport report = explained(c);
    const auto stage = static_cast<std::size_t>(report.verdict.worst_stage);
    const MemoryPhase phase = report.verdict.worst_phase;
    const Ledger& ledger = report.stages[stage][phase];
    std::map<std::string, const Explanation*> lines;
    for (const Explanation& e : report.explanations) lines[e.subject] = &e;
    for (std::size_t i = 0; i < kMemoryCategories; ++i) {
      const auto category = static_cast<MemoryCategory>(i);
      const std::string subject =
          std::string(name_of(phase)) + "." + std::string(name_of(category));
      SCOPED_TRACE(subject);
      ASSERT_EQ(lines.contains(subject), ledger.bytes[i] != 0);
      if (ledger.bytes[i] == 0) continue;
      EXPECT_FALSE(lines[subject]->formula.empty());
      EXPECT_FALSE(lines[subject]->source.empty());
      if (category == MemoryCategory::allocator_slack) continue;
      EXPECT_EQ(evaluate_sum(lines[subject]->values), ledger.bytes[i]) << lines[subject]->values;
    }
    const std::string total = std::string(name_of(phase)) + ".total";
    ASSERT_TRUE(lines.contains(total));
    EXPECT_EQ(evaluate_sum(lines[total]->values), ledger.total().value());
    const std::string upper = std::string(name_of(phase)) + ".upper_bound";
    ASSERT_TRUE(lines.contains(upper));
    EXPECT_EQ(evaluate_sum(lines[upper]->values), report.verdict.upper.value());
  }
}

// What the operations of a layer keep adds up to what the layer keeps.
TEST(MemoryExplanation, ListsWhatEachOperationKeeps) {
  for (const ExplainedCase& c : cases()) {
    if (c.layout.recompute != Recompute::none || !c.job.recompute_operations.empty()) continue;
    SCOPED_TRACE(c.name);
    const EngineProfile& engine = *find_engine(c.engine);
    for (const LayerSpec& layer : c.model.kinds) {
      if (layer.role == LayerRole::head) continue;  // part of it is logits and loss
      SCOPED_TRACE(layer.name);
      std::int64_t sum = 0;
      for (const KeptActivation& each : kept_activations(c.model, layer, c.job, engine, c.layout)) {
        sum += each.bytes;
      }
      EXPECT_EQ(sum, layer_memory(c.model, layer, c.job, engine, c.layout).saved);
    }
  }
}

// The cases above are worth something only while they reach every kind of summand but those of
// machines they do not run on.
TEST(MemoryExplanation, IsTestedOnEveryCategory) {
  std::map<std::string, int> seen;
  for (const ExplainedCase& c : cases()) {
    const StepReport report = explained(c);
    for (const StageMemory& stage : report.stages) {
      for (std::size_t i = 0; i < kMemoryCategories; ++i) {
        for (const Ledger& ledger : stage.phases) {
          seen[std::string(kMemoryCategoryNames[i])] += ledger.bytes[i] != 0;
        }
      }
    }
  }
  for (const std::string_view name : kMemoryCategoryNames) {
    EXPECT_GT(seen[std::string(name)], 0) << name;
  }
}

}  // namespace
}  // namespace shardwise
