#include "tests/executor/engine/bound_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "executor/kernels/compute/cpu_compute.h"

namespace shardwise::exec::test {

BoundRank::BoundRank(const Plan& plan, World& world, const LayerKernels& kernels, StepKind step)
    : context_(lowering_context(plan, Granularity::layer, false)),
      units_(state_units(context_, 0)),
      step_(step_block_shape(plan.layout, context_.num_microbatches, plan.job.sequence_length,
                             plan.job.calculate_per_token_loss)) {
  const Layout& layout = plan.layout;
  const auto shards = static_cast<int>(layout.dp_shard);
  const DataParallelPlace place = {layout.dp_shard,     world.rank() % shards,
                                   layout.dp_replicate, world.rank() / shards,
                                   world.size(),        world.rank()};
  std::vector<LayerRoom> rooms;
  for (const LayerSpec& kind : plan.model.kinds) {
    parts_.layers.push_back(kernels.make(kind));
    const LayerBytes bytes = parts_.layers.back()->bytes();
    rooms.push_back({bytes.saved, bytes.forward_workspace, bytes.backward_workspace, bytes.tables});
  }
  program_ = lower_to_run(plan, step, place, rooms, world.traits().adds_into_shard);
  parts_.context = &context_;
  parts_.fill_tables = kernels.fill_tables;
  parts_.state = std::make_unique<RankState>(units_, context_.placement, state_types(context_),
                                             place, program().units);
  parts_.communicators = std::make_unique<CommunicatorTable>(
      std::span<const StepProgram>(&program_, 1), layout, world);
  parts_.compute = device_.compute(1);
  parts_.arena = &arena_;
  const auto count = static_cast<std::size_t>(context_.num_microbatches);
  const auto tokens = static_cast<std::size_t>(layout.micro_batch_size * plan.job.sequence_length);
  for (std::size_t mb = 0; mb < count; ++mb) {
    for (std::size_t i = 0; i < tokens; ++i) {
      const auto number =
          static_cast<std::int64_t>(i * 7 + mb * 31) + std::int64_t{13} * world.rank();
      step_.inputs(mb)[i] = number % plan.model.vocab_size;
    }
    std::ranges::copy(step_.inputs(mb), step_.targets(mb).begin());
    step_.loss_scale(mb) = 1.0F / static_cast<float>(tokens);
  }
  step_.own_tokens() = static_cast<std::int64_t>(tokens * count);
  step_.adam_step() = adam_step({}, 0);
  binder_ = std::make_unique<ProgramBinder>(parts_, program(), 0);
  arena_.place(program(), binder_->items());
  arena_.allocate(device_);
  DeviceStream stream;  // NOLINT(misc-const-correctness): the device takes it as its own
  step_.upload(device_, arena_.at(0, program().step_block), stream);
  parts_.state->fill(arena_, 0, drawn_weights(1, 1), device_);
}

const ProgramOp& BoundRank::op(const std::string& name) const {
  for (const ProgramOp& op : program().operations) {
    if (name_of(program(), op) == name) return op;
  }
  throw std::runtime_error("no " + name);
}

const Operand& BoundRank::operand(const std::string& name, OperandPart part) const {
  const auto all = program().operands_of(op(name));
  const auto found = std::ranges::find(all, part, &Operand::part);
  if (found == all.end()) throw std::runtime_error(name + " has no such operand");
  return *found;
}

TensorView BoundRank::numbers(const Operand& operand) const {
  return {memory().data() + offset_of(operand), static_cast<std::size_t>(operand.count),
          operand.dtype};
}

std::int64_t BoundRank::offset_of(const Operand& operand) const {
  return arena_.layout(0).offsets[operand.buffer] + operand.begin_byte();
}

std::span<std::byte> BoundRank::memory() const {
  return {arena_.at(0, 0) - arena_.layout(0).offsets[0], static_cast<std::size_t>(arena_.bytes())};
}

void BoundRank::run(const ProgramOp& op) {
  const OpKernel& kernel =
      binder_->kernels()[static_cast<std::size_t>(&op - program().operations.data())];
  DeviceStream stream;
  if (kernel.prepare) kernel.prepare(stream);
  kernel.run(stream);
}

}  // namespace shardwise::exec::test
