#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/host_memory.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/unit_queues.h"
#include "planner/cost/software/runtime_memory.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

// What is true of every ledger, over thousands of seeded engines, models, jobs and layouts.

namespace shardwise {
namespace {

using enum MemoryCategory;

constexpr unsigned kInvariantsSeed = 20261121;
constexpr int kSamples = test::kSanitized ? 300 : 3000;

struct Sample {
  ModelSpec model;
  JobSpec job;
  EngineProfile engine;
  Layout layout;
  std::string text;
};

constexpr SavedFormat JobSpec::*kSaved[] = {&JobSpec::saved_linear_inputs,
                                            &JobSpec::saved_activation_inputs,
                                            &JobSpec::saved_attention_outputs};

class Sampler {
 public:
  Sampler() : cluster_(*find_cluster("dgx-h100")) {
    models_ = {test::llama(8, 1024, 2816, 8, 4, 32000), test::llama_3_1_8b(),
               test::gpt(12, 768, 12, 50257), test::llama(16, 5120, 13824, 40, 8, 152064),
               test::mixture(8, 1024, 16, 16, 2, 1408, 2816)};
  }

  /// The next sample that is legal; what is asked of `change` may still make it illegal.
  Sample next() {
    for (;;) {
      Sample s = draw();
      if (legal(s)) return s;
    }
  }
  bool legal(const Sample& s) const {
    const Result<ClusterSpec> sized = with_gpus(cluster_, s.layout.world());
    return sized && check_layout(s.model, *sized, s.job, s.engine, s.layout).empty();
  }
  LayoutMemory memory(const Sample& s) const {
    return layout_memory(s.model, s.job, s.engine, runtime_memory(s.engine, cluster_.gpu),
                         s.layout);
  }

 private:
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_)];
  }
  bool coin() { return std::uniform_int_distribution<int>(0, 1)(random_) == 1; }

  Sample draw() {
    Sample s;
    s.model = one_of(models_);
    s.engine = *find_engine(one_of(engine_names()));
    s.job.sequence_length = one_of<std::int64_t>({512, 2048, 4096});
    s.job.attention = one_of<AttentionKernel>(
        {AttentionKernel::flash, AttentionKernel::cudnn, AttentionKernel::materialised});
    s.job.loss =
        one_of<LossKernel>({LossKernel::fused, LossKernel::materialised, LossKernel::chunked});
    s.job.precision = one_of<DType>({DType::bf16, DType::bf16, DType::fp8, DType::fp32});
    s.job.fp8_recipe = one_of<Fp8Recipe>(
        {Fp8Recipe::delayed, Fp8Recipe::tensorwise, Fp8Recipe::rowwise, Fp8Recipe::block});
    s.job.fp8_parameter_gather = coin();
    s.job.dropout = coin() ? 0.1 : 0;
    for (SavedFormat JobSpec::*const field : kSaved) {
      s.job.*field =
          one_of<SavedFormat>({SavedFormat::as_computed, SavedFormat::fp8, SavedFormat::e5m6});
    }
    Layout& l = s.layout;
    const std::vector<std::int32_t> degrees = {1, 1, 1, 2, 4, 8};
    l.tp = one_of(degrees);
    l.cp = one_of(degrees);
    l.pp = one_of(degrees);
    l.vpp = l.pp > 1 && coin() ? 2 : 1;
    l.ep = s.model.num_experts > 0 ? one_of(degrees) : 1;
    l.etp = s.model.num_experts > 0 && coin() ? l.tp : 1;
    l.dp_shard = one_of(degrees);
    l.dp_replicate = one_of<std::int32_t>({1, 1, 2});
    l.micro_batch_size = one_of<std::int32_t>({1, 2});
    l.zero_stage = static_cast<std::int8_t>(one_of(s.engine.zero_stages));
    l.sequence_parallel = l.tp > 1 && coin();
    l.fp32_gradients = coin();
    l.double_buffer = coin();
    l.reshard_after_forward = coin();
    l.offload_optimizer = coin() && s.engine.offload_optimizer;
    l.offload_activations = one_of<int>({0, 0, 0, 1}) == 1;
    l.recompute = one_of<Recompute>({Recompute::none, Recompute::selective, Recompute::full});
    l.schedule = l.pp > 1 ? one_of(s.engine.schedules) : PipelineSchedule::one_f_one_b;
    s.job.global_batch_size = l.dp() * l.micro_batch_size * one_of<std::int64_t>({1, 8, 16});
    s.text = fmt_text(s);
    return s;
  }
  static std::string fmt_text(const Sample& s) {
    const Layout& l = s.layout;
    std::string text = s.model.name + " " + s.engine.name;
    for (const auto& [name, value] : std::vector<std::pair<const char*, std::int64_t>>{
             {"zero", l.zero_stage},
             {"tp", l.tp},
             {"cp", l.cp},
             {"pp", l.pp},
             {"vpp", l.vpp},
             {"ep", l.ep},
             {"etp", l.etp},
             {"shard", l.dp_shard},
             {"replicate", l.dp_replicate},
             {"mbs", l.micro_batch_size},
             {"batch", s.job.global_batch_size},
             {"seq", s.job.sequence_length},
             {"recompute", static_cast<int>(l.recompute)},
             {"schedule", static_cast<int>(l.schedule)},
             {"sp", l.sequence_parallel},
             {"attention", static_cast<int>(s.job.attention)},
             {"loss", static_cast<int>(s.job.loss)},
             {"double", l.double_buffer}}) {
      text += std::string(" ") + name + "=" + std::to_string(value);
    }
    return text;
  }

  std::mt19937 random_{kInvariantsSeed};
  ClusterSpec cluster_;
  std::vector<ModelSpec> models_;
};

std::int64_t persistent(const LayoutMemory& memory, bool whole = true) {
  std::int64_t most = 0;
  for (const StageMemory& stage : memory.stages) {
    const Ledger& l = stage[MemoryPhase::steady_optimizer_step];
    const std::int64_t both = whole ? l[weights] + l[gradients] : 0;
    most = std::max(most, both + l[main_weights] + l[optimizer_moments]);
  }
  return most;
}

/// What a rank has whole is padded for the ranks that share the optimizer's states, so more of them
/// may take more.
bool pads_what_is_whole(const Sample& s) {
  return pads_whole_units(s.engine, s.layout) || pads_whole_buckets(s.engine, s.layout);
}

/// What a micro-batch leaves for its backward on the stage that keeps most.
std::int64_t most_saved(const Sample& s) {
  const std::vector<LayerMemory> layers = layer_memories(s.model, s.job, s.engine, s.layout);
  std::int64_t most = 0;
  for (const StageLayers& stage : assign_stages(s.model, s.layout)) {
    std::int64_t kept = 0;
    for (const std::int64_t of_chunk : stage_parts(s.model, layers, stage).chunk_saved) {
      kept += of_chunk;
    }
    most = std::max(most, kept);
  }
  return most;
}

TEST(MemoryInvariants, PartsAddUpAndNestForEveryPhaseAndStage) {
  Sampler sampler;
  for (int i = 0; i < kSamples; ++i) {
    const Sample s = sampler.next();
    SCOPED_TRACE(s.text);
    const LayoutMemory memory = sampler.memory(s);
    ASSERT_EQ(memory.stages.size(), static_cast<std::size_t>(s.layout.pp));
    for (std::size_t stage = 0; stage < memory.stages.size(); ++stage) {
      const StageMemory& of_stage = memory.stages[stage];
      for (const Ledger& ledger : of_stage.phases) {
        std::int64_t sum = 0;
        for (const std::int64_t bytes : ledger.bytes) {
          ASSERT_GE(bytes, 0);
          sum += bytes;
        }
        ASSERT_EQ(ledger.total().value(), sum);
        ASSERT_LE(ledger.allocated(), ledger.reserved());
        ASSERT_LE(ledger.reserved(), ledger.total());
        ASSERT_LE(ledger.total(), of_stage.peak_total());
        ASSERT_LE(ledger.reserved(), of_stage.peak_reserved());
        ASSERT_LE(ledger.allocated(), of_stage.peak_allocated());
      }
      ASSERT_LE(of_stage.peak_total(), memory.upper[stage]);
    }
  }
}

TEST(MemoryInvariants, MoreRanksNeverHoldMoreStates) {
  Sampler sampler;
  int compared = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Sample s = sampler.next();
    Sample wider = s;
    wider.layout.dp_shard *= 2;
    wider.job.global_batch_size *= 2;
    if (!sampler.legal(wider)) continue;
    // Without sharding its buckets grow with the ranks, so that other tensors have gaps between
    // them.
    if (has_unit_queues(s.engine) && s.layout.zero_stage == 0) continue;
    ++compared;
    const bool whole = !pads_what_is_whole(s);
    ASSERT_LE(persistent(sampler.memory(wider), whole), persistent(sampler.memory(s), whole))
        << s.text;
  }
  EXPECT_GT(compared, kSamples / 2);
}

TEST(MemoryInvariants, AHigherZeroStageNeverHoldsMoreStates) {
  Sampler sampler;
  int compared = 0;
  for (int i = 0; i < kSamples; ++i) {
    Sample s = sampler.next();
    // One rank shards nothing, and Megatron-FSDP pads its units all the same.
    if (s.layout.dp_shard == 1) continue;
    std::array<std::int64_t, 2> before = {-1, -1};
    for (const int stage : s.engine.zero_stages) {
      s.layout.zero_stage = static_cast<std::int8_t>(stage);
      if (!sampler.legal(s)) continue;
      const LayoutMemory memory = sampler.memory(s);
      const std::array<std::int64_t, 2> now = {persistent(memory, false), persistent(memory)};
      if (before[0] >= 0) {
        ++compared;
        // ZeRO-0 pads nothing.
        const std::size_t which = stage == 1 && pads_what_is_whole(s) ? 0 : 1;
        ASSERT_LE(now[which], before[which]) << s.text << ", stage " << stage;
      }
      before = now;
    }
  }
  EXPECT_GT(compared, kSamples / 4);
}

TEST(MemoryInvariants, LessIsSavedInFewerBits) {
  Sampler sampler;
  std::int64_t less = 0;
  for (int i = 0; i < kSamples; ++i) {
    Sample s = sampler.next();
    for (SavedFormat JobSpec::*const field : kSaved) {
      s.job.*field = SavedFormat::as_computed;
      const std::int64_t wide = most_saved(s);
      s.job.*field = SavedFormat::e5m6;
      const std::int64_t narrow = most_saved(s);
      s.job.*field = SavedFormat::fp8;
      ASSERT_LE(narrow, wide) << s.text;
      ASSERT_LE(most_saved(s), narrow) << s.text;
      less += most_saved(s) < wide ? 1 : 0;
    }
  }
  EXPECT_GT(less, kSamples);
}

TEST(MemoryInvariants, RecomputeKeepsLessTheMoreItRecomputes) {
  Sampler sampler;
  for (int i = 0; i < kSamples; ++i) {
    Sample s = sampler.next();
    s.layout.recompute = Recompute::none;
    const std::int64_t none = most_saved(s);
    s.layout.recompute = Recompute::selective;
    const std::int64_t selective = most_saved(s);
    s.layout.recompute = Recompute::full;
    const std::int64_t full = most_saved(s);
    ASSERT_LE(selective, none) << s.text;
    ASSERT_LE(full, selective) << s.text;
  }
}

TEST(MemoryInvariants, PeaksWithoutLedgersAreThoseOfTheLedgers) {
  Sampler sampler;
  for (int i = 0; i < kSamples; ++i) {
    const Sample s = sampler.next();
    SCOPED_TRACE(s.text);
    const RuntimeMemory runtime = runtime_memory(s.engine, find_cluster("dgx-h100")->gpu);
    MemoryRules rules = memory_rules(s.job, s.engine, runtime);
    rules.host_bytes = std::int64_t{1} << 34;
    rules.ranks_of_host = 8;
    const std::vector<LayerMemory> layers = layer_memories(s.model, s.job, s.engine, s.layout);
    const std::vector<StageLayers> stages = assign_stages(s.model, s.layout);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const StageParts parts = stage_parts(s.model, layers, stages[stage]);
      const StageContext context = {&rules, &s.layout, static_cast<std::int32_t>(stage), 8};
      const StageMemory memory = stage_memory(parts, context);
      const StagePeaks peaks = stage_peaks(parts, context);
      ASSERT_EQ(peaks.allocated, memory.peak_allocated());
      ASSERT_EQ(peaks.reserved, memory.peak_reserved());
      ASSERT_EQ(peaks.host_lacks, host_lacks(host_bytes(parts, context), rules));
      ASSERT_EQ(peaks.needed, needed_memory(memory, rules));
      ASSERT_EQ(peaks.point, memory.peak_total());
      ASSERT_EQ(peaks.upper, memory.peak_total() + memory_doubt(memory, parts, context).total());
    }
  }
}

// But for an arena's room for two layers, there while any of them runs, and for the fullest last
// layer of a chunk, taken to lie beside every first one: little, of one or two layers a stage.
TEST(MemoryInvariants, OffloadingNeverTakesMoreOfTheGpu) {
  Sampler sampler;
  for (int i = 0; i < kSamples; ++i) {
    Sample s = sampler.next();
    s.layout.offload_activations = s.layout.offload_optimizer = false;
    const auto peak = [&] {
      std::int64_t most = 0;
      for (const StageMemory& stage : sampler.memory(s).stages) {
        most = std::max(most, stage.peak_allocated().value());
      }
      return most;
    };
    const std::int64_t limit = peak() / 100 * 101;
    s.layout.offload_activations = true;
    ASSERT_LE(peak(), limit) << s.text;
    s.layout.offload_optimizer = s.engine.offload_optimizer;
    ASSERT_LE(peak(), limit) << s.text;
  }
}

}  // namespace
}  // namespace shardwise
