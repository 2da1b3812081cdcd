#include "executor/engine/meetings.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/recorded/rendezvous.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise::exec {
namespace {

bool one_clock(ControlGroup& everyone) {
  const std::vector<std::string> clocks = all_gather_texts(everyone, this_clock());
  return std::ranges::all_of(
      clocks, [&](const std::string& clock) { return !clock.empty() && clock == clocks.front(); });
}

/// What ranks that meet call their operation alike.
struct Meeting {
  enum class Kind : std::int32_t { message, collective, of_stages };
  Kind kind = Kind::collective;
  GroupKind group = GroupKind::pp;
  bool ends = false;        // CollectiveWork::ends
  std::int64_t number = 0;  // of the message, of the operation, or among those of several stages
  friend auto operator<=>(const Meeting&, const Meeting&) = default;
};
/// A rank at one.
struct Arrival {
  Meeting meeting;
  std::int64_t ready = 0;
  std::size_t op = 0;
};

std::vector<Arrival> arrivals(const StageProgram& program, std::span<const OpSpan> spans) {
  std::vector<Arrival> all;
  std::map<std::pair<GroupKind, bool>, std::int64_t> issued;
  for (std::size_t op = 0; op < spans.size(); ++op) {
    const ProgramOp& each = program.operations[op];
    const CollectiveWork* const work = program.communication(each);
    if (work == nullptr) continue;
    Meeting meeting = {Meeting::Kind::collective, work->group, work->ends,
                       static_cast<std::int64_t>(op)};
    if (each.message >= 0) {
      meeting = {Meeting::Kind::message, work->group, false, each.message};
    } else if (crosses_stages(work->group)) {
      meeting.kind = Meeting::Kind::of_stages;
      meeting.number = issued[{work->group, work->ends}]++;
    }
    all.push_back({meeting, spans[op].ready, op});
  }
  return all;
}

/// When each rank was ready for what: stages have programs, and so arrivals, of their own.
std::vector<std::map<Meeting, std::int64_t>> gather_arrivals(ControlGroup& everyone,
                                                             std::span<const Arrival> own) {
  const auto ranks = static_cast<std::size_t>(everyone.size());
  const std::size_t count = own.size();
  std::vector<std::size_t> counts(ranks);
  everyone.all_gather_bytes(std::as_bytes(std::span(&count, 1)),
                            std::as_writable_bytes(std::span(counts)));
  const std::size_t most = *std::ranges::max_element(counts);
  std::vector<Arrival> mine(own.begin(), own.end());
  mine.resize(most);
  std::vector<Arrival> all(most * ranks);
  everyone.all_gather_bytes(std::as_bytes(std::span<const Arrival>(mine)),
                            std::as_writable_bytes(std::span(all)));
  std::vector<std::map<Meeting, std::int64_t>> ready(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < counts[rank]; ++i) {
      const Arrival& each = all[rank * most + i];
      ready[rank][each.meeting] = each.ready;
    }
  }
  return ready;
}

}  // namespace

// The steady clock counts from the machine's start, whose number this is. Source: Linux,
// Documentation/admin-guide/sysctl/kernel.rst, random.
std::string this_clock() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

void find_meetings(const StageProgram& program, const Layout& layout, ControlGroup& everyone,
                   std::span<OpSpan> spans) {
  if (!one_clock(everyone)) return;
  const std::vector<Arrival> own = arrivals(program, spans);
  const std::vector<std::map<Meeting, std::int64_t>> all = gather_arrivals(everyone, own);
  std::map<GroupKind, std::vector<std::int64_t>> groups;
  for (const Arrival& arrival : own) {
    const ProgramOp& op = program.operations[arrival.op];
    const GroupKind kind = program.communication(op)->group;
    const auto [group, fresh] = groups.try_emplace(kind);
    if (fresh) group->second = group_ranks(layout, kind, everyone.rank());
    OpSpan& span = spans[arrival.op];
    for (const std::int64_t rank : group->second) {
      const bool other_stage = op.message >= 0 && rank != everyone.rank() &&
                               rank != group->second[static_cast<std::size_t>(op.peer)];
      const auto& theirs = all[static_cast<std::size_t>(rank)];
      const auto found = theirs.find(arrival.meeting);
      if (other_stage || found == theirs.end()) continue;
      span.met = std::max(span.met, found->second);
    }
    span.met = std::min(span.met, span.end);
  }
}

}  // namespace shardwise::exec
