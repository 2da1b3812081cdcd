// What a role's kernel reads and writes is what its operands say, each role by name.
#include "executor/engine/program_binder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "executor/comm/thread_world.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/engine/bound_rank.h"
#include "tests/executor/engine/plain_world.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

Plan plan_of(const char* engine, int zero_stage, int dp_shard, std::int64_t num_microbatches) {
  Layout layout;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.dp_shard = dp_shard;
  return laptop_plan(engine, layout, num_microbatches, false);
}

void on_ranks(const Plan& plan, const std::function<void(World&)>& rank_main) {
  AbortSignal abort;
  run_ranks(static_cast<int>(plan.layout.world()), abort, rank_main, std::chrono::seconds(60));
}

void fill(const TensorView& numbers, float value) {
  const std::vector<float> values(numbers.count, value);
  cast(numbers, values);
}

/// Layer that does nothing but keep what it was given.
class Given : public Layer {
 public:
  LayerBytes bytes() const override { return {192, 64, 128, 64}; }
  void forward(const ForwardPass& pass, const Issue& /*to*/) const override { last_forward = pass; }
  void backward(const BackwardPass& pass, const Issue& /*to*/) const override {
    last_backward = pass;
    last_gradients.assign(pass.gradients.begin(), pass.gradients.end());
    for (std::byte* gradient : last_gradients) *reinterpret_cast<float*>(gradient) += 3;
  }

  mutable ForwardPass last_forward;
  mutable BackwardPass last_backward;
  mutable std::vector<std::byte*> last_gradients;
};

LayerKernels given() {
  return {[](const LayerSpec&) { return std::make_unique<Given>(); },
          [](std::byte*, const Issue&) {}};
}

const Given& layer_of(BoundRank& rank, const std::string& op) {
  const int kind =
      rank.parts().context->plan->model.layers[static_cast<std::size_t>(rank.op(op).layer)];
  return dynamic_cast<const Given&>(*rank.parts().layers[static_cast<std::size_t>(kind)]);
}

TEST(ProgramBinder, GivesAForwardPassItsOperands) {
  const Plan plan = plan_of("shardwise", 0, 1, 2);
  on_ranks(plan, [&](World& world) {
    BoundRank rank(plan, world, given());
    const std::string name = "fwd.layer1.mb1";
    rank.run(name);
    const ForwardPass& pass = layer_of(rank, name).last_forward;
    EXPECT_EQ(pass.stream, rank.numbers(rank.operand(name, OperandPart::stream)).data);
    EXPECT_EQ(pass.saved, rank.numbers(rank.operand(name, OperandPart::saved)).data);
    EXPECT_EQ(pass.workspace, rank.numbers(rank.operand(name, OperandPart::layer_workspace)).data);
    EXPECT_EQ(pass.tables, rank.numbers(rank.operand(name, OperandPart::tables)).data);
    EXPECT_EQ(pass.inputs, nullptr);  // of an embedding alone
    const std::string first = "fwd.layer0.mb1";
    rank.run(first);
    const TensorView inputs = rank.numbers(rank.operand(first, OperandPart::inputs));
    EXPECT_EQ(reinterpret_cast<const std::byte*>(layer_of(rank, first).last_forward.inputs),
              inputs.data);
    const StepBlock block = step_block(step_block_shape(plan.layout, 2, plan.job.sequence_length,
                                                        plan.job.calculate_per_token_loss));
    const std::byte* const all = rank.memory().data() + rank.offset_of_step();
    EXPECT_EQ(inputs.data, all + block.inputs.begin + block.inputs.bytes / 2);
    EXPECT_EQ(static_cast<std::int64_t>(inputs.count), block.inputs.bytes / 2);
  });
}

// A later micro-batch's gradients are made from zeros and join those of the earlier one.
TEST(ProgramBinder, ClearsGradientsAndAddsThemToTheSumAfterTheBackwardPass) {
  const Plan plan = plan_of("shardwise", 0, 1, 2);
  on_ranks(plan, [&](World& world) {
    BoundRank rank(plan, world, given());
    const std::string name = "bwd.layer1.mb1";
    const TensorView sum = rank.numbers(rank.operand(name, OperandPart::gradient_sum));
    const TensorView made = rank.numbers(rank.operand(name, OperandPart::made_gradients));
    fill(sum, 5);
    fill(made, 100);
    rank.run(name);
    EXPECT_EQ(layer_of(rank, name).last_gradients.front(),
              rank.numbers(rank.operand(name, OperandPart::parameter_gradient)).data);
    EXPECT_EQ(std::ranges::count(sum.floats(), 8.0F),
              std::ssize(plan.model.kinds[1].parameters));  // the first element of each tensor
    EXPECT_EQ(std::ranges::count(sum.floats(), 5.0F),
              std::ssize(sum.floats()) - std::ssize(plan.model.kinds[1].parameters));
  });
}

// Kernels of GPUs add to what earlier micro-batches left.
TEST(ProgramBinder, HasKernelsOfGpusAddToTheSumItself) {
  Plan plan = plan_of("shardwise", 0, 1, 2);
  plan.cluster = *with_gpus(*find_cluster("dgx-a100"), 1);
  on_ranks(plan, [&](World& world) {
    BoundRank rank(plan, world, given());
    const std::string name = "bwd.layer1.mb1";
    const TensorView sum = rank.numbers(rank.operand(name, OperandPart::joined_gradients));
    fill(sum, 5);
    rank.run(name);
    const auto tensors = std::ssize(plan.model.kinds[1].parameters);
    EXPECT_EQ(std::ranges::count(sum.floats(), 8.0F), tensors);  // the first element of each
    EXPECT_EQ(std::ranges::count(sum.floats(), 5.0F), std::ssize(sum.floats()) - tensors);
  });
}

TEST(ProgramBinder, GathersTheShardsOfAllRanks) {
  const Plan plan = plan_of("shardwise", 3, 2, 1);
  on_ranks(plan, [&](World& world) {
    BoundRank rank(plan, world, given());
    const std::string name = "gather.layer1.mb0";
    const Operand& all = rank.operand(name, OperandPart::gathered_weights);
    fill(rank.numbers(rank.operand(name, OperandPart::weights)),
         static_cast<float>(world.rank() + 1));
    rank.run(name);
    const std::span<float> whole = rank.numbers(all).floats();
    EXPECT_EQ(std::ranges::count(whole, 1.0F), all.piece);
    EXPECT_EQ(std::ranges::count(whole, 2.0F), all.count - all.piece);
  });
}

// A communicator that does not add sums in its place in what is sent; the program's own operation
// adds it.
TEST(ProgramBinder, AccumulatesWhatWasReducedInPlace) {
  const Plan plan = plan_of("shardwise", 3, 2, 2);
  on_ranks(plan, [&](World& threads) {
    PlainWorld world(threads, {.sums_in_rank_order = true, .ragged_shards = true});
    BoundRank rank(plan, world, given());
    const std::string reduce = "reduce.layer1.mb1";
    const std::string accumulate = "accumulate.layer1.mb1";
    const TensorView shard = rank.numbers(rank.operand(accumulate, OperandPart::gradients));
    fill(shard, 10);
    fill(rank.numbers(rank.operand(reduce, OperandPart::sent_gradients)),
         static_cast<float>(world.rank() + 1));
    rank.run(reduce);
    EXPECT_EQ(shard.floats().front(), 10);
    EXPECT_EQ(rank.numbers(rank.operand(accumulate, OperandPart::sent_gradients)).floats().front(),
              3);
    rank.run(accumulate);
    EXPECT_EQ(shard.floats().front(), 13);
    EXPECT_EQ(shard.floats().back(), 13);
  });
}

TEST(ProgramBinder, ReducesIntoTheShardAndJoinsIt) {
  const Plan plan = plan_of("shardwise", 3, 2, 2);
  on_ranks(plan, [&](World& world) {
    BoundRank rank(plan, world, given());
    for (const auto& [name, joins] :
         {std::pair{"reduce.layer1.mb0", false}, std::pair{"reduce.layer1.mb1", true}}) {
      const TensorView shard = rank.numbers(rank.operand(name, OperandPart::gradients));
      fill(shard, 10);
      fill(rank.numbers(rank.operand(name, OperandPart::sent_gradients)),
           static_cast<float>(world.rank() + 1));
      rank.run(name);
      EXPECT_EQ(shard.floats().front(), joins ? 13 : 3) << name;
    }
  });
}

/// Bytes of the rank's memory that an operation's operands say of.
std::vector<bool> bytes_of(const BoundRank& rank, const ProgramOp& op,
                           const std::function<bool(const Operand&)>& which) {
  std::vector<bool> marked(rank.memory().size(), false);
  for (const Operand& operand : rank.program().operands_of(op)) {
    if (!which(operand)) continue;
    const std::int64_t begin = rank.offset_of(operand);
    std::fill_n(marked.begin() + begin, operand.end_byte() - operand.begin_byte(), true);
  }
  return marked;
}

/// Of an output whose padding is nobody's: what a layer lays out, and what comes of short shards.
bool is_padded(const Operand& operand) {
  using enum OperandPart;
  return operand.part == saved || operand.part == layer_workspace || operand.part == tables ||
         operand.part == received_gradients;
}

/// Runs an operation twice, the second time with other bytes wherever it does not read.
void expect_only_operands(BoundRank& rank, const ProgramOp& op, std::mt19937& random) {
  const std::string name = name_of(rank.program(), op);
  const std::span<std::byte> memory = rank.memory();
  const std::vector<std::byte> before(memory.begin(), memory.end());
  const std::vector<bool> read =
      bytes_of(rank, op, [](const Operand& operand) { return operand.reads(); });
  const std::vector<bool> written =
      bytes_of(rank, op, [](const Operand& operand) { return operand.writes(); });
  const std::vector<bool> results = bytes_of(rank, op, [](const Operand& operand) {
    return operand.writes() && operand.access != Access::workspace && !is_padded(operand);
  });

  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (!read[i]) memory[i] = static_cast<std::byte>(random());
  }
  const std::vector<std::byte> other(memory.begin(), memory.end());
  rank.run(op);
  const std::vector<std::byte> made(memory.begin(), memory.end());
  std::ranges::copy(before, memory.begin());
  rank.run(op);

  std::size_t beside = 0;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const bool touched = memory[i] != before[i] || made[i] != other[i];
    if (touched && !written[i]) ++beside;
    if (results[i] && made[i] != memory[i]) ++differ;
  }
  EXPECT_EQ(beside, 0U) << name << " writes beside its operands";
  EXPECT_EQ(differ, 0U) << name << " reads beside its operands, or leaves some of them";
}

struct Case {
  const char* engine;
  int zero_stage;
  int dp_shard;
  int dp_replicate;
  DType precision;
  bool fp32_gradients;
  std::int32_t reshard;
};

/// What the operations of seven plans were. \param adds  communicators add into shards
struct Ran {
  std::set<OpRole> roles;
  std::size_t accumulate = 0;  // those that have operands
};
Ran run_all(bool adds) {
  const CommunicatorTraits traits = {
      .sums_in_rank_order = true, .adds_into_shard = adds, .ragged_shards = true};
  Ran ran;
  std::mutex mutex;
  for (const Case& each : {Case{"shardwise", 3, 3, 1, DType::bf16, false, 1},
                           Case{"shardwise", 2, 2, 2, DType::fp32, true, 1},
                           Case{"shardwise", 1, 2, 1, DType::bf16, true, 1},
                           Case{"megatron_ddp", 1, 2, 1, DType::bf16, false, 1},
                           Case{"megatron_fsdp", 3, 2, 2, DType::bf16, true, 1},
                           Case{"fsdp2", 3, 4, 1, DType::bf16, false, 2},
                           Case{"fsdp1", 3, 2, 1, DType::bf16, false, 1}}) {
    Plan plan = plan_of(each.engine, each.zero_stage, each.dp_shard, 2);
    plan.layout.dp_replicate = each.dp_replicate;
    plan.layout.outer_shards_optimizer =
        each.dp_replicate > 1 && std::string(each.engine) == "megatron_fsdp";
    plan.layout.fp32_gradients = each.fp32_gradients;
    plan.layout.reshard_after_forward = each.reshard;
    plan.layout.recompute = each.reshard == 1 ? Recompute::full : Recompute::none;
    plan.job.precision = each.precision;
    plan.job.calculate_per_token_loss = each.dp_replicate > 1;
    plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
    plan.job.global_batch_size = plan.layout.dp() * 2;
    SCOPED_TRACE(std::string(each.engine) + " ZeRO-" + std::to_string(each.zero_stage));
    EXPECT_TRUE(is_legal(plan.model, plan.cluster, plan.job, plan.engine, plan.layout));
    on_ranks(plan, [&](World& threads) {
      PlainWorld world(threads, traits);
      BoundRank rank(plan, world, stand_in_kernels(plan));
      std::mt19937 random(static_cast<std::uint32_t>(world.rank()));
      for (const ProgramOp& op : rank.program().operations) {
        expect_only_operands(rank, op, random);
        const std::lock_guard<std::mutex> lock(mutex);
        ran.roles.insert(op.role);
        const bool works = !rank.program().operands_of(op).empty();
        if (op.role == OpRole::accumulate && works) ++ran.accumulate;
      }
    });
  }
  return ran;
}

// With communicators that add into shards, and with those that do not, as NCCL's.
TEST(ProgramBinder, BindsKernelsThatReadAndWriteTheirOperandsAndNothingElse) {
  const Ran ran = run_all(true);
  for (const OpRole role : {OpRole::forward, OpRole::backward, OpRole::recompute, OpRole::cast,
                            OpRole::gather, OpRole::gather_outer, OpRole::copy_in, OpRole::copy_out,
                            OpRole::reshard, OpRole::reduce, OpRole::reduce_outer, OpRole::finalize,
                            OpRole::gradient_norm, OpRole::optimizer, OpRole::gather_updated}) {
    EXPECT_TRUE(ran.roles.contains(role)) << name_of(role);
  }
  EXPECT_EQ(ran.accumulate, 0U);
  EXPECT_GT(run_all(false).accumulate, 0U);
}

}  // namespace
}  // namespace shardwise::exec::test
