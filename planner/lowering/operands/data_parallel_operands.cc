#include "planner/lowering/operands/data_parallel_operands.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/lowering/operands/pass_operands.h"
#include "planner/lowering/operands/step_operands.h"
#include "planner/schedule/gathers_once.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// Lists the operands of what data parallelism and the end of a step do.
class OperandLister {
  using enum OperandPart;

 public:
  explicit OperandLister(OperandWriter& writer)
      : writer_(writer),
        flow_(writer),
        passes_(writer, flow_),
        parts_(writer.run().units->units.size(), kNone),
        sent_(parts_),
        received_(parts_),
        joins_(parts_.size(), false),
        summed_(parts_.size()),
        cast_(parts_) {}

  void list(OpId op) {
    const ProgramOp& each = writer_.operation(op);
    switch (each.role) {
      case OpRole::forward:
      case OpRole::recompute:
      case OpRole::backward:
        return passes_.list(op);
      case OpRole::cast:
        return cast(op, unit(each));
      case OpRole::gather:
        return gather(op, unit(each));
      case OpRole::gather_outer:
        return gather_own(op, unit(each), Placement::shard_both);
      case OpRole::gather_updated:
        return gather_own(op, unit(each), Placement::shard_inner);
      case OpRole::copy_out:
        return copy_out(op, unit(each));
      case OpRole::reshard:
        return reshard(op, unit(each));
      case OpRole::copy_in:
        return copy_in(op, unit(each));
      case OpRole::reduce:
        reduce(op, unit(each));
        return list_check_operands(writer_, op);
      case OpRole::sum:
        return sum(op, unit(each));
      case OpRole::reduce_outer:
        return reduce_outer(op, unit(each));
      case OpRole::finalize:
      case OpRole::gradient_norm:
      case OpRole::optimizer:
        return list_step_operands(writer_, op);
      case OpRole::accumulate:
        return accumulate(op, unit(each));
      case OpRole::send_forward:
      case OpRole::send_backward:
        return writer_.add(op, message_of(writer_, op, kInput, true));
      case OpRole::receive_forward:
      case OpRole::receive_backward:
        return writer_.add(op, message_of(writer_, op, kOutput, false));
      default:
        SHARDWISE_CHECK(false, name_of(writer_.program(), each));
    }
  }

 private:
  static constexpr auto kInput = Access::input;
  static constexpr auto kOutput = Access::output;
  static constexpr auto kInner = Placement::shard_inner;

  std::size_t unit(const ProgramOp& op) const { return unit_of(*writer_.run().units, op); }
  DType compute() const { return writer_.types().compute; }
  DType travels() const { return writer_.types().reduced; }
  const DataParallelPlace& place() const { return writer_.run().place; }

  BufferId of_unit(OpId op, OperandPart part, MemoryCategory category, std::size_t u, DType dtype) {
    return writer_.placed_or_made(op, part, category, writer_.unit(u).elements * bytes_of(dtype));
  }

  void cast(OpId op, std::size_t u) {
    const Operand own = writer_.weights(kInput, u, writer_.placement().parameters);
    cast_[u] = writer_.placed_or_made(op, cast_weights, MemoryCategory::gathered_weights,
                                      writer_.room(u, kInner) * bytes_of(compute()));
    writer_.add(op, own);
    writer_.add(op, cast_of(kOutput, u));
  }
  Operand cast_of(Access access, std::size_t u) const {
    Operand cast = writer_.whole(cast_weights, access, u, cast_[u], compute());
    cast.count = held_of(writer_.unit(u), writer_.placement().parameters, place()).count;
    return cast;
  }

  void gather(OpId op, std::size_t u) {
    const BufferId whole =
        of_unit(op, gathered_weights, MemoryCategory::gathered_weights, u, compute());
    Operand own = writer_.weights(kInput, u, writer_.placement().parameters);
    std::int64_t piece = writer_.room(u, kInner);
    if (parts_[u] != kNone) {
      own = part_of(kInput, u);
      const LoweringContext& context = *writer_.run().context;
      if (!keeps_parts(context.layout(), context.engine())) parts_[u] = kNone;
      piece = part_elements(u);
    } else if (cast_[u] != kNone) {
      own = cast_of(kInput, u);
      cast_[u] = kNone;
    }
    Operand all = writer_.whole(gathered_weights, kOutput, u, whole, compute());
    all.piece = piece;
    writer_.add(op, own);
    writer_.add(op, all);
    passes_.gathered(u, whole);
  }

  /// Of what this rank keeps, from what of it the ranks of a group updated.
  void gather_own(OpId op, std::size_t u, Placement piece) {
    Operand all = writer_.weights(kOutput, u, writer_.placement().parameters);
    all.part = gathered_weights;
    all.piece = writer_.room(u, piece);
    writer_.add(op, writer_.weights(kInput, u, writer_.placement().optimizer));
    writer_.add(op, all);
  }

  void copy_out(OpId op, std::size_t u) {
    const BufferId whole =
        of_unit(op, gathered_weights, MemoryCategory::gathered_weights, u, compute());
    writer_.add(op, writer_.whole(gathered_weights, kInput, u, passes_.gathered(u), compute()));
    writer_.add(op, writer_.whole(gathered_weights, kOutput, u, whole, compute()));
    passes_.gathered(u, whole);
  }

  /// Of weights that are resharded after forward: the ranks that share them, and what each keeps:
  /// the shards of neighbours, the last may be short.
  std::int64_t part_ranks() const { return writer_.run().context->layout().reshard_after_forward; }
  std::int64_t part_elements(std::size_t u) const {
    return writer_.room(u, kInner) * place().shard_ranks / part_ranks();
  }
  ShardRange part_held(std::size_t u) const {
    return piece_held(writer_.unit(u).elements, part_elements(u),
                      place().shard_rank % part_ranks());
  }
  Operand part_of(Access access, std::size_t u) const {
    Operand part = writer_.whole(weights_part, access, u, parts_[u], compute());
    part.count = part_held(u).count;
    return part;
  }
  void reshard(OpId op, std::size_t u) {
    parts_[u] = writer_.placed_or_made(op, weights_part, MemoryCategory::gathered_weights,
                                       part_elements(u) * bytes_of(compute()));
    Operand all = writer_.whole(gathered_weights, kInput, u, passes_.gathered(u), compute());
    all.first = part_held(u).begin;
    all.count = part_held(u).count;
    writer_.add(op, all);
    writer_.add(op, part_of(kOutput, u));
  }

  void copy_in(OpId op, std::size_t u) {
    sent_[u] = of_unit(op, sent_gradients, MemoryCategory::gradient_staging, u, travels());
    writer_.add(op, flow_.source(op));
    writer_.add(op, writer_.whole(sent_gradients, kOutput, u, sent_[u], travels()));
  }

  void reduce(OpId op, std::size_t u) {
    const CollectiveWork* work = writer_.program().communication(writer_.operation(op));
    SHARDWISE_CHECK(work != nullptr, name_of(writer_.program(), writer_.operation(op)));
    Operand source = flow_.source(op);
    if (sent_[u] != kNone) {
      source = writer_.whole(sent_gradients, kInput, u, std::exchange(sent_[u], kNone), travels());
    }
    SHARDWISE_CHECK(source.part == gradients || source.dtype == travels(),
                    name_of(writer_.program(), writer_.operation(op)));
    if (work->kind == CollectiveKind::all_reduce) return all_reduce(op, source);
    joins_[u] = source.part != gradients && flow_.joins_earlier(op);
    source.piece = writer_.room(u, kInner);
    const bool alike = !joins_[u] && source.dtype == writer_.types().gradients;
    const bool scatters = work->kind == CollectiveKind::reduce_scatter;
    if (scatters && !alike && !writer_.run().adds_into_shard) return reduce_in_place(op, source, u);
    writer_.add(op, source);
    if (work->kind == CollectiveKind::all_to_all) {
      received_[u] =
          writer_.placed_or_made(op, received_gradients, MemoryCategory::gradient_staging,
                                 received(kInput, u).count * bytes_of(travels()));
      writer_.add(op, received(kOutput, u));
      // The shard exists from here on where it does not over the step.
      writer_.touch(writer_.state(u).gradients, op);
    } else {
      writer_.add(op, writer_.reduced(shard_access(u), u));
    }
  }

  /// The sum is in its place in what is sent, whose values nobody reads again. What the program
  /// has for that makes it the shard, or adds it; where it has nothing, the reduction does.
  void reduce_in_place(OpId op, Operand source, std::size_t u) {
    source.access = Access::accumulate;
    writer_.add(op, source);
    const OpId next = op + 1;
    const auto& all = writer_.program().operations;
    const bool follows = next < all.size() && all[next].role == OpRole::accumulate &&
                         unit(all[next]) == u && all[next].microbatch == all[op].microbatch;
    if (!follows) return writer_.add(op, writer_.reduced(shard_access(u), u));
    const ShardRange own = held_of(writer_.unit(u), kInner, place());
    source.access = kInput;
    source.first += own.begin;
    source.count = own.count;
    source.piece = 0;
    summed_[u] = source;
  }

  /// Nothing where the reduction did.
  void accumulate(OpId op, std::size_t u) {
    const std::optional<Operand> summed = std::exchange(summed_[u], std::nullopt);
    if (!summed) return;
    writer_.add(op, *summed);
    writer_.add(op, writer_.reduced(shard_access(u), u));
  }

  Access shard_access(std::size_t u) const { return joins_[u] ? Access::accumulate : kOutput; }

  /// Of what a rank keeps, in the type that travels: narrowed where it is, and widened again.
  void all_reduce(OpId op, Operand kept) {
    kept.part = gradients;
    kept.access = Access::accumulate;
    if (kept.dtype == travels()) return writer_.add(op, kept);
    Operand sent = kept;
    sent.part = sent_gradients;
    sent.access = kOutput;
    sent.dtype = travels();
    sent.first = kept.begin_byte() / std::max<std::int64_t>(1, bytes_of(travels()));
    kept.access = kInput;
    writer_.add(op, kept);
    writer_.add(op, sent);
    kept.access = kOutput;
    writer_.add(op, kept);
  }

  Operand received(Access access, std::size_t u) const {
    Operand all = writer_.whole(received_gradients, access, u, received_[u], travels());
    all.piece = writer_.room(u, kInner);
    all.count = all.piece * place().shard_ranks;
    return all;
  }

  void sum(OpId op, std::size_t u) {
    const Operand shard = writer_.reduced(shard_access(u), u);
    Operand sums =
        writer_.whole(shard_sum, Access::workspace, u,
                      writer_.placed_or_made(op, shard_sum, MemoryCategory::gradient_staging,
                                             writer_.room(u, kInner) * bytes_of(DType::fp32)),
                      DType::fp32);
    sums.count = shard.count;
    writer_.add(op, received(kInput, u));
    writer_.add(op, sums);
    writer_.add(op, shard);
  }

  void reduce_outer(OpId op, std::size_t u) {
    const CollectiveWork* work = writer_.program().communication(writer_.operation(op));
    const Placement updated = writer_.placement().optimizer;
    if (work == nullptr || work->kind != CollectiveKind::reduce_scatter) {
      return all_reduce(op, writer_.gradients(Access::accumulate, u, updated));
    }
    Operand all = writer_.reduced(kInput, u);
    all.piece = writer_.room(u, Placement::shard_both);
    writer_.add(op, all);
    writer_.add(op, writer_.gradients(kOutput, u, updated));
  }

  OperandWriter& writer_;
  GradientFlow flow_;
  PassOperands passes_;
  std::vector<BufferId> parts_;     // by unit: what a smaller group gathers in backward
  std::vector<BufferId> sent_;      // by unit: its gradients, in a reduction's input
  std::vector<BufferId> received_;  // by unit: of its gradients
  std::vector<bool> joins_;         // by unit: they join what earlier micro-batches left
  std::vector<std::optional<Operand>> summed_;  // by unit: in its place in what was sent
  std::vector<BufferId> cast_;                  // by unit: this rank's shard, to be gathered
};

}  // namespace

void list_operands(OperandWriter& writer) {
  OperandLister lister(writer);
  for (OpId op = 0; op < writer.program().operations.size(); ++op) lister.list(op);
}

}  // namespace shardwise
