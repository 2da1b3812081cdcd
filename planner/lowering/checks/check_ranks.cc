#include "planner/lowering/checks/check_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/lowering/stage/stage_builder.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise {
namespace {

using Node = std::uint32_t;
using Ranks = std::vector<std::int64_t>;

constexpr std::size_t kMostNamed = 6;  // operations of a cycle

/// Edges that point from what is first, by where they point from.
class Edges {
 public:
  void add(Node from, Node to) { all_.emplace_back(from, to); }

  /// Nodes that a walk from those without a predecessor does not reach: they are on a cycle, or
  /// behind one. \returns for each of them a predecessor that is one too; kNone for the others
  std::vector<Node> unreached(std::size_t nodes) {
    std::vector<std::uint32_t> begin(nodes + 1);
    std::vector<std::uint32_t> waits(nodes);
    for (const auto& [from, to] : all_) {
      ++begin[from + 1];
      ++waits[to];
    }
    for (std::size_t i = 0; i < nodes; ++i) begin[i + 1] += begin[i];
    std::vector<Node> to_of(all_.size());
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [from, to] : all_) to_of[next[from]++] = to;
    std::vector<Node> ready;
    for (Node node = 0; node < nodes; ++node) {
      if (waits[node] == 0) ready.push_back(node);
    }
    while (!ready.empty()) {
      const Node node = ready.back();
      ready.pop_back();
      for (std::uint32_t i = begin[node]; i < begin[node + 1]; ++i) {
        if (--waits[to_of[i]] == 0) ready.push_back(to_of[i]);
      }
    }
    std::vector<Node> before(nodes, kNone);
    for (const auto& [from, to] : all_) {
      if (waits[from] > 0 && waits[to] > 0) before[to] = from;
    }
    return before;
  }

 private:
  std::vector<std::pair<Node, Node>> all_;
};

/// The n-th operation of a communicator, or a message: its ranks meet there.
struct Rendezvous {
  Node node = kNone;
  std::size_t came = 0;
  std::int64_t first_rank = 0;
  OpId first = kNone;
};

class RankChecker {
 public:
  RankChecker(std::span<const StageProgram* const> by_rank, const Layout& layout,
              const RankQueues& queues)
      : by_rank_(by_rank), layout_(layout), queues_(queues) {
    Node nodes = 0;
    for (const StageProgram* const program : by_rank) {
      first_node_.push_back(nodes);
      nodes += 2 * static_cast<Node>(program->operations.size());
    }
    nodes_ = nodes;
  }

  std::string run() {
    for (std::int64_t rank = 0; rank < std::ssize(by_rank_) && problem_.empty(); ++rank) {
      add_rank(rank);
    }
    if (problem_.empty()) problem_ = missing();
    if (problem_.empty()) problem_ = cycle();
    return problem_;
  }

 private:
  /// A communicator by what its ranks and its purpose are; of a message also its number.
  using Key = std::tuple<Ranks, Stream, std::int32_t>;
  struct Meetings {
    Ranks ranks;
    std::vector<Rendezvous> all;
  };

  const StageProgram& program_of(std::int64_t rank) const {
    return *by_rank_[static_cast<std::size_t>(rank)];
  }
  Node begin_of(std::int64_t rank, OpId op) const {
    return first_node_[static_cast<std::size_t>(rank)] + 2 * op;
  }
  Node end_of(std::int64_t rank, OpId op) const { return begin_of(rank, op) + 1; }
  std::string text_of(std::int64_t rank, OpId op) const {
    const StageProgram& program = program_of(rank);
    return fmt::format("{} of rank {}", name_of(program, program.operations[op]), rank);
  }

  void add_rank(std::int64_t rank) {
    const StageProgram& program = program_of(rank);
    std::array<OpId, kStreams> last{};
    last.fill(kNone);
    std::vector<OpId> last_in_queue(kStreams, kNone);
    std::array<std::size_t, kStreams> queue{};
    std::size_t streams = 0;
    std::map<std::size_t, OpId> last_of;  // by communicator
    for (OpId op = 0; op < program.operations.size() && problem_.empty(); ++op) {
      const ProgramOp& each = program.operations[op];
      const auto stream = static_cast<std::size_t>(each.stream);
      const Node begin = begin_of(rank, op);
      edges_.add(begin, end_of(rank, op));
      if (last[stream] != kNone) {
        edges_.add(end_of(rank, last[stream]), begin);
      } else {
        queue[stream] = queue_of(streams++);
      }
      last[stream] = op;
      for (const OpId wait : program.of(each.waits)) edges_.add(end_of(rank, wait), begin);
      OpId& before = last_in_queue[queue[stream]];
      if (queues_.hardware_queues > 0 && before != kNone) {
        edges_.add(begin_of(rank, before), begin);
      }
      before = op;
      meet(rank, op, last_of);
    }
  }

  std::size_t queue_of(std::size_t stream) const {
    return queues_.hardware_queues > 0 ? stream % static_cast<std::size_t>(queues_.hardware_queues)
                                       : stream;
  }

  /// Of an operation that meets other ranks.
  void meet(std::int64_t rank, OpId op, std::map<std::size_t, OpId>& last_of) {
    const StageProgram& program = program_of(rank);
    const ProgramOp& each = program.operations[op];
    if (each.message >= 0) return join(rank, op, message_of(rank, each), 0);
    const CollectiveWork* const work = program.communication(each);
    if (work == nullptr) return;
    const std::size_t communicator = communicator_of(rank, each.stream, *work);
    const auto [before, first] = last_of.try_emplace(communicator, op);
    if (!first) edges_.add(end_of(rank, std::exchange(before->second, op)), begin_of(rank, op));
    std::vector<std::size_t>& issued = issued_[static_cast<std::size_t>(rank)];
    if (issued.size() <= communicator) issued.resize(communicator + 1);
    join(rank, op, communicator, issued[communicator]++);
  }

  /// The number of what meets in these ranks.
  std::size_t number_of(Ranks ranks, Stream purpose, std::int32_t message) {
    const auto [found, fresh] =
        numbers_.try_emplace({std::move(ranks), purpose, message}, meetings_.size());
    if (fresh) meetings_.push_back({std::get<Ranks>(found->first), {}});
    return found->second;
  }

  std::size_t communicator_of(std::int64_t rank, Stream stream, const CollectiveWork& work) {
    if (queues_.shared_communicator && stream == Stream::all_gather) {
      stream = Stream::reduce_scatter;
    }
    const auto [known, fresh] = known_.try_emplace({rank, stream, work.group, work.ends}, 0U);
    if (!fresh) return known->second;
    Ranks ranks = group_ranks(layout_, work.group, rank);
    if (work.ends) {
      const auto at = std::ranges::find(ranks, rank) - ranks.begin();
      const std::int64_t mirror = ranks[ranks.size() - 1 - static_cast<std::size_t>(at)];
      ranks = mirror == rank ? Ranks{rank} : Ranks{std::min(rank, mirror), std::max(rank, mirror)};
    }
    return known->second = number_of(std::move(ranks), stream, -1);
  }

  std::size_t message_of(std::int64_t rank, const ProgramOp& op) {
    const Ranks stages = group_ranks(layout_, GroupKind::pp, rank);
    const std::int64_t peer = stages[static_cast<std::size_t>(op.peer)];
    return number_of({std::min(rank, peer), std::max(rank, peer)}, Stream::send, op.message);
  }

  void join(std::int64_t rank, OpId op, std::size_t meetings, std::size_t nth) {
    Meetings& at = meetings_[meetings];
    if (at.ranks.size() < 2) return;
    if (at.all.size() <= nth) at.all.resize(nth + 1);
    Rendezvous& met = at.all[nth];
    if (met.came++ == 0) {
      met.node = nodes_++;
      met.first_rank = rank;
      met.first = op;
    } else if (!alike(met, rank, op)) {
      problem_ = fmt::format("{} meets {}, which moves other bytes", text_of(rank, op),
                             text_of(met.first_rank, met.first));
    }
    edges_.add(begin_of(rank, op), met.node);
    edges_.add(met.node, end_of(rank, op));
  }

  /// Whether a rank's operation is what the first one issued there.
  bool alike(const Rendezvous& met, std::int64_t rank, OpId op) const {
    const StageProgram& mine = program_of(rank);
    const StageProgram& theirs = program_of(met.first_rank);
    const ProgramOp& own = mine.operations[op];
    const ProgramOp& first = theirs.operations[met.first];
    if (own.message >= 0 || &mine == &theirs) return own.message >= 0 || own.cost == first.cost;
    return *mine.communication(own) == *theirs.communication(first);
  }

  /// A rendezvous to which not all ranks come.
  std::string missing() const {
    for (std::size_t m = 0; m < meetings_.size(); ++m) {
      const Meetings& each = meetings_[m];
      for (std::size_t nth = 0; nth < each.all.size(); ++nth) {
        const Rendezvous& met = each.all[nth];
        if (each.ranks.size() < 2 || met.came == each.ranks.size()) continue;
        const auto lacks = [&](std::int64_t rank) {
          const std::vector<std::size_t>& issued = issued_[static_cast<std::size_t>(rank)];
          return rank != met.first_rank && (issued.size() <= m || issued[m] <= nth);
        };
        return fmt::format("{} waits for rank {}, which does not issue it",
                           text_of(met.first_rank, met.first),
                           *std::ranges::find_if(each.ranks, lacks));
      }
    }
    return {};
  }

  std::string cycle() {
    const std::vector<Node> before = edges_.unreached(nodes_);
    const auto stuck = std::ranges::find_if(before, [](Node node) { return node != kNone; });
    if (stuck == before.end()) return {};
    // Far enough back along predecessors every walk is on a cycle.
    std::vector<bool> seen(before.size());
    auto node = static_cast<Node>(stuck - before.begin());
    while (!seen[node]) {
      seen[node] = true;
      node = before[node];
    }
    std::vector<std::string> names;
    Node at = node;
    do {
      const std::string name = name_of_node(at);
      if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
      at = before[at];
    } while (at != node);
    const bool more = names.size() > kMostNamed;
    if (more) names.resize(kMostNamed);
    return fmt::format("each waits for the next, and the last for the first: {}{}",
                       fmt::join(names, "; "), more ? "; others" : "");
  }

  /// The operation of a node; empty of a rendezvous.
  std::string name_of_node(Node node) const {
    const auto after = std::ranges::upper_bound(first_node_, node);
    const auto rank = after - first_node_.begin() - 1;
    const OpId op = (node - first_node_[static_cast<std::size_t>(rank)]) / 2;
    return op < program_of(rank).operations.size() ? text_of(rank, op) : "";
  }

  std::span<const StageProgram* const> by_rank_;
  const Layout& layout_;
  RankQueues queues_;
  std::vector<Node> first_node_;  // by rank
  Node nodes_ = 0;
  Edges edges_;
  std::map<Key, std::size_t> numbers_;
  std::map<std::tuple<std::int64_t, Stream, GroupKind, bool>, std::size_t> known_;
  std::vector<Meetings> meetings_;
  std::vector<std::vector<std::size_t>> issued_ =
      std::vector<std::vector<std::size_t>>(by_rank_.size());  // by rank and communicator
  std::string problem_;
};

}  // namespace

std::string check_ranks(std::span<const StageProgram* const> by_rank, const Layout& layout,
                        const RankQueues& queues) {
  return RankChecker(by_rank, layout, queues).run();
}

std::string check_ranks(const StepProgram& program, const Layout& layout,
                        const RankQueues& queues) {
  std::vector<const StageProgram*> by_rank;
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
    const Ranks stages = group_ranks(layout, GroupKind::pp, rank);
    const auto stage = std::ranges::find(stages, rank) - stages.begin();
    by_rank.push_back(&program.stages[static_cast<std::size_t>(stage)]);
  }
  return check_ranks(by_rank, layout, queues);
}

}  // namespace shardwise
