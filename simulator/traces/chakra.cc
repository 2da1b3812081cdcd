#include "simulator/traces/chakra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/spec/plan/mesh.h"

namespace shardwise::sim {
namespace {

// Fields and values of et_def.proto.
constexpr std::uint32_t kVersion = 1;  // of GlobalMetadata
constexpr std::uint32_t kId = 1;       // of Node
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kType = 3;
constexpr std::uint32_t kDataDeps = 5;
constexpr std::uint32_t kDuration = 7;
constexpr std::uint32_t kAttribute = 10;
constexpr std::uint32_t kInt32 = 7;  // of AttributeProto, whose name is field 1
constexpr std::uint32_t kInt64 = 9;
constexpr std::uint32_t kBool = 27;
constexpr std::uint32_t kString = 29;
constexpr std::uint64_t kCompute = 4;  // of NodeType
constexpr std::uint64_t kSend = 5;
constexpr std::uint64_t kReceive = 6;
constexpr std::uint64_t kCollective = 7;

/// CollectiveCommType.
std::uint64_t chakra_kind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 0;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::broadcast:
      return 5;
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
  }
  return 0;
}

void add_number(ProtoMessage& node, std::string_view name, std::uint32_t field,
                std::uint64_t value) {
  ProtoMessage attribute;
  attribute.text(1, name);
  attribute.number(field, value);
  node.message(kAttribute, attribute);
}

void add_text(ProtoMessage& node, std::string_view name, std::string_view value) {
  ProtoMessage attribute;
  attribute.text(1, name);
  attribute.text(kString, value);
  node.message(kAttribute, attribute);
}

void add_message(ProtoMessage& node, std::int64_t from, std::int64_t to, std::int64_t bytes,
                 std::int32_t tag) {
  add_number(node, "comm_src", kInt32, static_cast<std::uint64_t>(from));
  add_number(node, "comm_dst", kInt32, static_cast<std::uint64_t>(to));
  add_number(node, "comm_size", kInt64, static_cast<std::uint64_t>(bytes));
  add_number(node, "comm_tag", kInt32, static_cast<std::uint64_t>(tag));
}

std::int64_t all_bytes(const CollectiveWork& work) {
  return std::llround(static_cast<double>(work.bytes) * work.times);
}

/// Whole microseconds of the operations of a stream: both ends are rounded, so that many short ones
/// add up to what they take.
class Microseconds {
 public:
  std::uint64_t next(double seconds) {
    const std::int64_t before = std::llround(now_ * 1e6);
    now_ += seconds;
    return static_cast<std::uint64_t>(std::llround(now_ * 1e6) - before);
  }

 private:
  double now_ = 0;
};

}  // namespace

ChakraTraces::ChakraTraces(const Plan& plan, const Simulation& simulation)
    : plan_(plan), simulation_(simulation) {
  const std::vector<StageProgram>& stages = simulation.program.stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const ProgramOp& op : stages[s].operations) {
      if (op.message < 0) continue;
      Ends& ends = messages_[op.message];
      (op.stream == Stream::receive ? ends.receiver : ends.sender) = s;
    }
  }
}

std::vector<std::int64_t> ChakraTraces::members(const CollectiveWork& work,
                                                std::int64_t rank) const {
  std::vector<std::int64_t> ranks = group_ranks(plan_.layout, work.group, rank);
  if (work.ends) {
    const auto at = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    const std::int64_t mirror = ranks[ranks.size() - 1 - static_cast<std::size_t>(at)];
    return {std::min(rank, mirror), std::max(rank, mirror)};
  }
  if (work.node) {
    const std::int64_t domain = plan_.cluster.tiers.front().domain_size;
    std::erase_if(ranks, [&](std::int64_t other) { return other / domain != rank / domain; });
  }
  return ranks;
}

void ChakraTraces::add_collective(ProtoMessage& node, const CollectiveWork& work,
                                  const std::vector<std::int64_t>& ranks) {
  const auto parts = static_cast<std::int64_t>(ranks.size());
  std::int64_t bytes = all_bytes(work);
  // An all-gather has the bytes that a rank puts in, everything else those of the whole buffer: of
  // a ring's steps as much as makes an all-to-all send what they do.
  if (work.kind == CollectiveKind::all_gather) bytes /= parts;
  if (work.kind == CollectiveKind::send_recv) bytes = bytes * parts / (parts - 1);
  const auto fresh = static_cast<std::int64_t>(groups_.size()) + 1;
  const std::int64_t group = groups_.try_emplace(ranks, fresh).first->second;
  add_number(node, "comm_type", kInt64, chakra_kind(work.kind));
  add_number(node, "comm_size", kInt64, static_cast<std::uint64_t>(bytes));
  add_text(node, "pg_name", fmt::format("{}", group));
}

std::string ChakraTraces::of_rank(std::int64_t rank) {
  const std::vector<std::int64_t> pipeline = group_ranks(plan_.layout, GroupKind::pp, rank);
  const auto stage = static_cast<std::size_t>(std::find(pipeline.begin(), pipeline.end(), rank) -
                                              pipeline.begin());
  const StageProgram& program = simulation_.program.stages[stage];
  ProtoMessage head;
  head.text(kVersion, "0.0.4");
  std::string bytes = head.delimited();
  std::array<Microseconds, kStreams> clocks;
  std::array<std::int64_t, kStreams> before;
  before.fill(-1);
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const ProgramOp& op = program.operations[i];
    const auto stream = static_cast<std::size_t>(op.stream);
    const OpCost& cost = program.costs[static_cast<std::size_t>(op.cost)];
    std::vector<std::uint64_t> waits;
    for (const std::uint32_t wait : program.of(op.waits)) waits.push_back(wait);
    if (before[stream] >= 0) waits.push_back(static_cast<std::uint64_t>(before[stream]));
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    before[stream] = static_cast<std::int64_t>(i);

    const CollectiveWork* work = cost.collectives.empty() ? nullptr : &cost.collectives.front();
    std::vector<std::int64_t> ranks;
    if (work != nullptr && op.message < 0) ranks = members(*work, rank);
    const bool sends = op.message >= 0 && op.stream != Stream::receive;
    ProtoMessage node;
    node.number(kId, i);
    node.text(kName, name_of(program, op));
    node.number(kType, op.message >= 0    ? (sends ? kSend : kReceive)
                       : ranks.size() > 1 ? kCollective
                                          : kCompute);
    node.packed(kDataDeps, waits);
    const double alone = simulation_.prices[stage][static_cast<std::size_t>(op.cost)].seconds;
    node.number(kDuration, clocks[stream].next(alone));
    add_number(node, "is_cpu_op", kBool, 0);
    if (op.message >= 0) {
      const Ends& ends = messages_.at(op.message);
      add_message(node, pipeline[ends.sender], pipeline[ends.receiver],
                  work == nullptr ? 0 : all_bytes(*work), op.message);
    } else if (ranks.size() > 1) {
      add_collective(node, *work, ranks);
    }
    bytes += node.delimited();
  }
  return bytes;
}

std::string ChakraTraces::groups() const {
  std::vector<std::pair<std::int64_t, const std::vector<std::int64_t>*>> order;
  for (const auto& [ranks, number] : groups_) order.emplace_back(number, &ranks);
  std::sort(order.begin(), order.end());
  std::string text = "{";
  for (const auto& [number, ranks] : order) {
    text +=
        fmt::format("{}\n  \"{}\": [{}]", number == 1 ? "" : ",", number, fmt::join(*ranks, ", "));
  }
  return text + "\n}\n";
}

}  // namespace shardwise::sim
