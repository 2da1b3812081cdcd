#include "tests/simulator/workload/hand_made.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace shardwise::sim {
namespace {

/// One pass of one micro-batch through one chunk.
struct Turn {
  bool forward = true;
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
};

/// Adds the turns of every stage, with the messages between chunks. Chunk c of stage s is part
/// c x stages + s of the model.
class Turns {
 public:
  Turns(const Pipeline& shape) : shape_(shape), made(static_cast<std::size_t>(shape.stages)) {}

  void add(std::int32_t stage, const Turn& turn) {
    const auto s = static_cast<std::size_t>(stage);
    const std::int32_t part = turn.chunk * shape_.stages + stage;
    const std::int32_t parts = shape_.stages * shape_.vpp;
    const std::int32_t before = turn.forward ? part - 1 : part + 1;
    const std::int32_t after = turn.forward ? part + 1 : part - 1;
    std::vector<std::uint32_t> waits;
    if (before >= 0 && before < parts) {
      waits.push_back(message(s, Stream::receive, turn, before, {}));
    } else if (!turn.forward) {
      waits.push_back(forward_of_last_[turn.microbatch]);
    }
    const double seconds = (turn.forward ? shape_.forward : shape_.backward) / shape_.vpp;
    const std::uint32_t op = made.add(s, Stream::compute, seconds, waits);
    made.op(s, op).role = turn.forward ? OpRole::forward : OpRole::backward;
    made.op(s, op).microbatch = turn.microbatch;
    made.op(s, op).chunk = static_cast<std::int16_t>(turn.chunk);
    if (turn.forward && after == parts) forward_of_last_[turn.microbatch] = op;
    if (after >= 0 && after < parts) message(s, Stream::send, turn, part, {op});
  }

 private:
  /// The end at `stage` of the message that leaves `part`.
  std::uint32_t message(std::size_t stage, Stream stream, const Turn& turn, std::int32_t part,
                        const std::vector<std::uint32_t>& waits) {
    const auto [at, fresh] = numbers_.try_emplace({turn.forward, turn.microbatch, part},
                                                  static_cast<std::int32_t>(numbers_.size()));
    const std::uint32_t op = made.add(stage, stream, shape_.hop, waits);
    made.op(stage, op).message = at->second;
    made.op(stage, op).microbatch = turn.microbatch;
    return op;
  }

  const Pipeline& shape_;
  std::map<std::tuple<bool, std::int32_t, std::int32_t>, std::int32_t> numbers_;
  std::map<std::int32_t, std::uint32_t> forward_of_last_;

 public:
  HandMade made;
};

/// The k-th forward (or backward) turn of a stage: groups of `stages` micro-batches go through the
/// chunks one after the other. Source: Narayanan et al., arXiv:2104.04473, figure 4.
Turn turn_of(const Pipeline& shape, bool forward, std::int32_t k) {
  const std::int32_t round = shape.stages * shape.vpp;
  const std::int32_t chunk = (k % round) / shape.stages;
  return {forward, k / round * shape.stages + k % shape.stages,
          forward ? chunk : shape.vpp - 1 - chunk};
}

}  // namespace

HandMade::HandMade(std::size_t stages) {
  program.stages.resize(stages);
  prices.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    program.stages[s].stage = static_cast<std::int32_t>(s);
  }
}

IndexRange HandMade::list(std::size_t stage, const std::vector<std::uint32_t>& indices) {
  std::vector<std::uint32_t>& all = program.stages[stage].indices;
  const auto begin = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), indices.begin(), indices.end());
  return {begin, static_cast<std::uint32_t>(all.size())};
}

std::uint32_t HandMade::add(std::size_t stage, Stream stream, double seconds,
                            const std::vector<std::uint32_t>& waits) {
  StageProgram& made = program.stages[stage];
  ProgramOp op;
  op.stream = stream;
  op.cost = static_cast<std::int32_t>(made.costs.size());
  op.waits = list(stage, waits);
  made.costs.emplace_back();
  prices[stage].push_back({seconds, 1, {}, 0, {}});
  made.operations.push_back(op);
  return static_cast<std::uint32_t>(made.operations.size() - 1);
}

std::uint32_t HandMade::add(std::size_t stage, Stream stream, double seconds,
                            std::initializer_list<std::uint32_t> waits) {
  return add(stage, stream, seconds, std::vector<std::uint32_t>(waits));
}

std::uint32_t HandMade::collective(std::size_t stage, Stream stream, double seconds,
                                   GroupKind group, const std::vector<std::uint32_t>& waits) {
  const std::uint32_t index = add(stage, stream, seconds, waits);
  CollectiveWork work;
  work.group = group;
  program.stages[stage].costs.back().collectives.push_back(work);
  return index;
}

std::uint32_t HandMade::buffer(std::size_t stage, std::int64_t bytes, MemoryCategory category,
                               bool resident) {
  std::vector<ProgramBuffer>& buffers = program.stages[stage].buffers;
  buffers.push_back({category, bytes, -1, -1, resident});
  return static_cast<std::uint32_t>(buffers.size() - 1);
}

void HandMade::allocates(std::size_t stage, std::uint32_t index,
                         const std::vector<std::uint32_t>& buffers) {
  op(stage, index).allocates = list(stage, buffers);
}
void HandMade::frees(std::size_t stage, std::uint32_t index,
                     const std::vector<std::uint32_t>& buffers) {
  op(stage, index).frees = list(stage, buffers);
}

HandMade gpipe(const Pipeline& shape) {
  Turns turns(shape);
  for (std::int32_t s = shape.stages; s-- > 0;) {
    for (std::int32_t m = 0; m < shape.microbatches; ++m) turns.add(s, {true, m, 0});
    for (std::int32_t m = 0; m < shape.microbatches; ++m) turns.add(s, {false, m, 0});
  }
  return std::move(turns.made);
}

HandMade one_f_one_b(const Pipeline& shape) {
  Turns turns(shape);
  const std::int32_t all = shape.microbatches * shape.vpp;
  for (std::int32_t s = shape.stages; s-- > 0;) {
    // Source: arXiv:2104.04473, section 2.2, and Megatron's count of warm-up turns.
    const std::int32_t warm_up =
        std::min(all, shape.vpp == 1 ? shape.stages - 1 - s
                                     : 2 * (shape.stages - 1 - s) + (shape.vpp - 1) * shape.stages);
    for (std::int32_t k = 0; k < warm_up; ++k) turns.add(s, turn_of(shape, true, k));
    for (std::int32_t k = warm_up; k < all; ++k) {
      turns.add(s, turn_of(shape, true, k));
      turns.add(s, turn_of(shape, false, k - warm_up));
    }
    for (std::int32_t k = all - warm_up; k < all; ++k) turns.add(s, turn_of(shape, false, k));
  }
  return std::move(turns.made);
}

HandMade fsdp(std::int32_t layers, GroupKind group) {
  HandMade made;
  std::vector<std::uint32_t> computed;  // the last kernel of each layer, forward then backward
  std::uint32_t gathered = made.collective(0, Stream::all_gather, 2, group);
  for (std::int32_t pass = 0; pass < 2 * layers; ++pass) {
    const std::uint32_t mine = gathered;
    if (pass + 1 < 2 * layers) {
      std::vector<std::uint32_t> waits;
      if (pass > 0) waits.push_back(computed[static_cast<std::size_t>(pass) - 1]);
      gathered = made.collective(0, Stream::all_gather, 2, group, waits);
    }
    const bool forward = pass < layers;
    made.add(0, Stream::compute, 0.5, {mine});
    std::uint32_t kernel = made.add(0, Stream::compute, forward ? 2.0 : 4.0);
    if (!forward) {
      kernel = made.add(0, Stream::compute, 0.5);
      made.collective(0, Stream::reduce_scatter, 2, group, {kernel});
    }
    computed.push_back(kernel);
  }
  made.add(0, Stream::compute, 3,
           {static_cast<std::uint32_t>(made.program.stages[0].operations.size() - 1)});
  return made;
}

}  // namespace shardwise::sim
