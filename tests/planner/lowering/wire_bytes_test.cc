#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/schedule/gathers_once.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

// Bytes that one rank hands to data-parallel collectives over a step: those of
// Rajbhandari et al., "ZeRO" (arXiv:1910.02054), section 7, per micro-batch where the engine
// communicates in each. With N parameters of p bytes, gradients of g bytes on their way and m
// micro-batches: ZeRO-0 gN, ZeRO-1 gN + pN, ZeRO-2 mgN + pN, ZeRO-3 m (2p + g) N. All extents of
// the model divide by the ranks, so nothing is padded but by Megatron-FSDP.

constexpr std::int32_t kRanks = 8;

Layout sharded_at_stage(int zero_stage) {
  Layout layout;
  layout.dp_shard = kRanks;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  return layout;
}

/// Elements of the layers of a role, of all layers when `role` is null. Megatron-FSDP rounds each
/// unit up to ranks x the least common multiple of its rows, to all ranks with HFSDP
/// (param_and_grad_buffer.py:1883-1909).
std::int64_t elements_of(const Plan& plan, const LayerRole* role = nullptr) {
  std::int64_t sum = 0;
  for (const int kind : plan.model.layers) {
    const LayerSpec& layer = plan.model.kinds[static_cast<std::size_t>(kind)];
    if (role != nullptr && layer.role != *role) continue;
    std::int64_t step = 1;
    if (plan.engine.name == "megatron_fsdp" && plan.layout.zero_stage > 0) {
      for (const ParameterSpec& p : layer.parameters) {
        step = std::lcm(step, p.elements() / p.shape.front());
      }
      step *= std::int64_t{kRanks} *
              (plan.layout.outer_shards_optimizer ? plan.layout.dp_replicate : 1);
    }
    sum += round_up(layer.parameter_count(), step);
  }
  return sum;
}
std::int64_t elements_of(const Plan& plan, LayerRole role) { return elements_of(plan, &role); }

struct Bytes {
  std::int64_t gather = 0;
  std::int64_t reduce = 0;
  std::int64_t updated = 0;
};
Bytes bytes_of_step(const Plan& plan) {
  Bytes sum;
  for (const StageProgram& stage : lower(plan).stages) {
    sum.gather += wire_bytes(stage, OpRole::gather);
    sum.reduce += wire_bytes(stage, OpRole::reduce);
    sum.updated += wire_bytes(stage, OpRole::gather_updated);
  }
  return sum;
}

/// An element of a gradient on its way.
std::int64_t gradient_bytes_of(const EngineProfile& engine) {
  return engine.gradient_buffer == GradientBuffer::copy_in ? bytes_of(engine.reduce_dtype) : 4;
}

TEST(WireBytes, AreTheLawsForWholeParameters) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    for (const int zero_stage : engine.zero_stages) {
      if (zero_stage == 3) continue;
      for (const bool each : {true, false}) {
        for (const std::int64_t m : {1, 2, 5}) {
          Plan plan = small_plan(engine, sharded_at_stage(zero_stage), m);
          plan.layout.reduce_every_microbatch = each;
          const std::int64_t n = elements_of(plan);
          const Bytes bytes = bytes_of_step(plan);
          const std::int64_t times = zero_stage == 2 && each ? m : 1;
          EXPECT_EQ(bytes.reduce, times * gradient_bytes_of(engine) * n) << name << zero_stage;
          EXPECT_EQ(bytes.updated, zero_stage == 0 ? 0 : 2 * n) << name << zero_stage;
          EXPECT_EQ(bytes.gather, 0) << name << zero_stage;
        }
      }
    }
  }
}

// Some engines keep the parameters outside the blocks whole: FSDP2 the head from forward to
// backward, FSDP1 its root from forward to backward, Megatron-FSDP and ours over the step.
TEST(WireBytes, AreTheLawsForShardedParameters) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    if (std::ranges::count(engine.zero_stages, 3) == 0) continue;
    for (const bool each : {true, false}) {
      for (const std::int64_t m : {1, 2, 5}) {
        Plan plan = small_plan(engine, sharded_at_stage(3), m);
        plan.layout.reduce_every_microbatch = each;
        const std::int64_t n = elements_of(plan);
        const std::int64_t head = elements_of(plan, LayerRole::head);
        const std::int64_t root = head + elements_of(plan, LayerRole::embedding);
        std::int64_t gathered = 2 * m * n;
        if (engine.gather == GatherBuffer::copy_out) gathered -= m * head;
        if (engine.keeps_root_gathered) {
          gathered -= (engine.gather == GatherBuffer::rate_limited ? m : 2 * m - 1) * root;
        } else if (engine.gather == GatherBuffer::double_buffer) {
          gathered -= (2 * m - 1) * root;
        }
        const Bytes bytes = bytes_of_step(plan);
        EXPECT_EQ(bytes.gather, 2 * gathered) << name << " m " << m;
        EXPECT_EQ(bytes.reduce, (each ? m : 1) * gradient_bytes_of(engine) * n) << name;
        EXPECT_EQ(bytes.updated, 0) << name;
      }
    }
  }
}

TEST(WireBytes, GatherOnceAMicroBatchWithoutReshardAfterForward) {
  for (const std::int64_t m : {1, 4}) {
    Plan plan = small_plan(fsdp2(), sharded_at_stage(3), m);
    plan.layout.reshard_after_forward = false;
    EXPECT_EQ(bytes_of_step(plan).gather, 2 * m * plan.model.parameter_count());
  }
}

// PyTorch's stages neither reshard after a backward pass nor reduce before the last one, whatever
// the schedule; the command line and the search have no other pipelines of FSDP2.
TEST(WireBytes, AreOfOneGatherAndOneReductionAStepInPipelinesOfFsdp2) {
  const EngineProfile engine = fsdp2();
  for (const PipelineSchedule schedule : engine.schedules) {
    Layout layout = sharded_at_stage(3);
    layout.pp = 2;
    layout.schedule = schedule;
    layout.vpp = schedule == PipelineSchedule::looped_bfs ? 2 : 1;
    Plan plan = small_plan(engine, layout, 4);
    EXPECT_FALSE(
        check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).empty());
    gather_once(plan.layout, plan.engine, plan.job);
    EXPECT_TRUE(check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).empty());
    const StepProgram program = lower(plan);
    EXPECT_EQ(problems_of(program), "");
    EXPECT_EQ(bytes_of_step(plan).gather, 2 * plan.model.parameter_count());
    EXPECT_EQ(bytes_of_step(plan).reduce, 4 * plan.model.parameter_count());
  }
}

// Forward gathers among all, backward within groups of two: what it needs of the others is in the
// parts that forward left.
TEST(WireBytes, AreGatheredWithinSmallGroupsInBackwardWhereForwardLeftParts) {
  Plan plan = small_plan(fsdp2(), sharded_at_stage(3), 1);
  plan.layout.reshard_after_forward = 2;
  const StageProgram stage = lower(plan).stages.front();
  const std::int64_t n = plan.model.parameter_count();
  const std::int64_t head = elements_of(plan, LayerRole::head);  // stays whole
  std::int64_t within_two = 0;
  std::int64_t among_all = 0;
  std::int64_t kept = 0;
  for (const ProgramOp& op : stage.operations) {
    for (const std::uint32_t b : stage.of(op.allocates)) {
      if (op.role == OpRole::reshard) kept += stage.buffers[b].bytes;
    }
    if (op.role != OpRole::gather) continue;
    const CollectiveWork& work = stage.costs[static_cast<std::size_t>(op.cost)].collectives.front();
    (work.group == GroupKind::reshard ? within_two : among_all) += work.bytes;
    EXPECT_EQ(work.group == GroupKind::reshard, op.pass == Pass::backward);
  }
  EXPECT_EQ(among_all, 2 * n);
  EXPECT_EQ(within_two, 2 * (n - head));
  EXPECT_EQ(kept, 2 * (n - head) / 2);
}

// hpZ keeps the parts to the end of the step: all gathers but the first of each unit are within
// two.
TEST(WireBytes, AreGatheredWithinSmallGroupsAfterTheFirstForwardPassOfHpZ) {
  for (const std::int64_t m : {1, 3}) {
    Plan plan = small_plan(deepspeed(), sharded_at_stage(3), m);
    plan.layout.reshard_after_forward = 2;
    const StageProgram stage = lower(plan).stages.front();
    const std::int64_t n = plan.model.parameter_count();
    std::int64_t within_two = 0;
    std::int64_t among_all = 0;
    std::int64_t kept = 0;
    std::int64_t freed = 0;
    std::vector<bool> is_part(stage.buffers.size(), false);
    for (const ProgramOp& op : stage.operations) {
      for (const std::uint32_t b : stage.of(op.allocates)) {
        if (op.role != OpRole::reshard) continue;
        kept += stage.buffers[b].bytes;
        is_part[b] = true;
      }
      for (const std::uint32_t b : stage.of(op.frees)) {
        if (!is_part[b]) continue;
        EXPECT_EQ(op.role, OpRole::optimizer);
        freed += stage.buffers[b].bytes;
      }
      if (op.role != OpRole::gather) continue;
      const CollectiveWork& work =
          stage.costs[static_cast<std::size_t>(op.cost)].collectives.front();
      (work.group == GroupKind::reshard ? within_two : among_all) += work.bytes;
    }
    EXPECT_EQ(among_all, 2 * n);
    EXPECT_EQ(within_two, (2 * m - 1) * 2 * n);
    EXPECT_EQ(kept, 2 * n / 2);
    EXPECT_EQ(freed, kept);
  }
}

// HSDP sums the shard over the replicas once a step; HFSDP scatters it, and gathers the weights
// that were updated in smaller shards once.
TEST(WireBytes, CrossReplicasOnceAStep) {
  for (const bool outer : {false, true}) {
    Layout layout = sharded_at_stage(3);
    layout.dp_replicate = 4;
    layout.outer_shards_optimizer = outer;
    const Plan plan = small_plan(megatron_fsdp(), layout, 3);
    const std::int64_t n = elements_of(plan);
    const StageProgram stage = lower(plan).stages.front();
    EXPECT_EQ(wire_bytes(stage, OpRole::reduce_outer), 4 * n / kRanks);
    EXPECT_EQ(wire_bytes(stage, OpRole::gather_outer), outer ? 2 * n / kRanks : 0);
  }
}

TEST(WireBytes, AddUpOverTheStagesOfAPipeline) {
  for (const std::int32_t vpp : {1, 2}) {
    Layout layout = sharded_at_stage(1);
    layout.pp = 4;
    layout.vpp = vpp;
    const Plan plan = small_plan(megatron_ddp(), layout, 8);
    const std::int64_t n = plan.model.parameter_count();
    EXPECT_EQ(bytes_of_step(plan).reduce, 4 * n);
    EXPECT_EQ(bytes_of_step(plan).updated, 2 * n);
  }
}

// 3 ranks: FSDP2 pads dimension 0 of each tensor, Megatron the end of each bucket to
// lcm(3, 128) = 384, FSDP1 the end of each unit.
TEST(WireBytes, IncludePadding) {
  Layout layout;
  layout.dp_shard = 3;
  layout.zero_stage = 3;
  Plan plan = small_plan(fsdp2(), layout, 1, 1);
  plan.layout.reshard_after_forward = false;
  // Rows: table 32000, head 32000, q and o 512, k and v 256, gate and up 1408, down 512, norms 512.
  const std::int64_t rows =
      std::int64_t{512} * (2 * 32001 + 2 * 513 + 2 * 258 + 2 * 1410) + std::int64_t{1408} * 513;
  EXPECT_EQ(bytes_of_step(plan).gather, 2 * (rows + std::int64_t{3} * 513));

  layout.zero_stage = 1;
  plan = small_plan(megatron_ddp(), layout, 1, 1);
  const std::int64_t n = plan.model.parameter_count();
  // 34,948,608 elements are fewer than the bucket of 40 million: one bucket.
  EXPECT_EQ(bytes_of_step(plan).updated, 2 * ((n + 383) / 384 * 384));
}

// 40 million elements, and the tensor that crosses the line is still taken in.
TEST(WireBytes, AreSplitIntoMegatronsBuckets) {
  const Plan plan = small_plan(megatron_ddp(), sharded_at_stage(1), 1, 16);
  const StageProgram stage = lower(plan).stages.front();
  std::int64_t buckets = 0;
  for (const ProgramOp& op : stage.operations) buckets += op.role == OpRole::reduce ? 1 : 0;
  // 16 blocks of 2,951,168, the head and the table of 16,384,000 each: the head and 9 blocks reach
  // 42.9 million, the rest is 37.0 million.
  EXPECT_EQ(buckets, 2);
}

}  // namespace
}  // namespace shardwise::test
