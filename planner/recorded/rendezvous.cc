#include "planner/recorded/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// What the participants of a rendezvous, and no others, have in common.
struct Common {
  enum class Kind : std::uint8_t { message, collective, mirrored };
  Kind kind = Kind::message;
  GroupKind group = GroupKind::pp;
  std::int64_t first = 0;   // rank of the group
  std::int64_t number = 0;  // of the message, of the operation, or among those of its kind
  friend auto operator<=>(const Common&, const Common&) = default;
};

/// What one rank takes part in.
class Participant {
 public:
  Participant(const Layout& layout, std::int64_t rank) : layout_(layout), rank_(rank) {}

  Common of(const StageProgram& program, std::uint32_t op) {
    const ProgramOp& each = program.operations[op];
    if (each.message >= 0) {
      return {Common::Kind::message, GroupKind::pp, group(GroupKind::pp).front(), each.message};
    }
    const CollectiveWork& work = *program.communication(each);
    const std::vector<std::int64_t>& ranks = group(work.group);
    Common common = {Common::Kind::collective, work.group, ranks.front(), op};
    if (work.ends) {
      common.kind = Common::Kind::mirrored;
      const auto own = std::ranges::find(ranks, rank_) - ranks.begin();
      const auto mirror = std::ssize(ranks) - 1 - own;
      common.first = ranks[static_cast<std::size_t>(std::min(own, mirror))];
    }
    if (crosses_stages(work.group)) common.number = issued_[{work.group, work.ends}]++;
    return common;
  }

 private:
  const std::vector<std::int64_t>& group(GroupKind kind) {
    const auto [found, fresh] = groups_.try_emplace(kind);
    if (fresh) found->second = group_ranks(layout_, kind, rank_);
    return found->second;
  }

  const Layout& layout_;
  std::int64_t rank_;
  std::map<GroupKind, std::vector<std::int64_t>> groups_;
  std::map<std::pair<GroupKind, bool>, std::int64_t> issued_;  // collectives of several stages
};

}  // namespace

void number_rendezvous(const Layout& layout, std::span<RecordedStep> ranks) {
  SHARDWISE_CHECK(std::ssize(ranks) == layout.world(), fmt::format("{} ranks", ranks.size()));
  std::map<Common, std::uint32_t> numbers;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const StageProgram& program = *ranks[rank].program;
    ranks[rank].rendezvous.assign(program.operations.size(), kNoRendezvous);
    Participant participant(layout, static_cast<std::int64_t>(rank));
    for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
      const ProgramOp& each = program.operations[op];
      if (each.message < 0 && program.communication(each) == nullptr) continue;
      const auto next = static_cast<std::uint32_t>(numbers.size());
      ranks[rank].rendezvous[op] =
          numbers.try_emplace(participant.of(program, op), next).first->second;
    }
  }
}

}  // namespace shardwise
