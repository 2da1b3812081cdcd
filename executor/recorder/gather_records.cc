#include "executor/recorder/gather_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace shardwise::exec {
namespace {

/// How much a rank recorded, or is to record by its programs.
struct Counts {
  std::int64_t first_spans = 0;
  std::int64_t first_items = 0;
  std::int64_t steady_spans = 0;
  std::int64_t steady_items = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// What is sent before spans and the bytes of items.
struct Header {
  std::int64_t arena_bytes = 0;
  std::int64_t growth_bytes = 0;
  double first_seconds = 0;
  double steady_seconds = 0;
  double unrecorded_s = 0;
  DeviceUse device;
  std::array<char, 40> clock{};  // 36 characters, the rest zeros
};
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<OpSpan>);

Counts counts_of(const RankRecord& record) {
  return {std::ssize(record.first.spans), std::ssize(record.first.items),
          std::ssize(record.steady.spans), std::ssize(record.steady.items)};
}

/// What rank 0 expects, and what the other has.
std::array<Counts, 2> exchange_counts(ControlGroup& pair, const Counts& mine) {
  std::array<Counts, 2> both;
  pair.all_gather_bytes(std::as_bytes(std::span(&mine, 1)),
                        std::as_writable_bytes(std::span(both)));
  return both;
}

void send(ControlGroup& pair, const StepRecord& step) {
  pair.send(std::as_bytes(std::span(step.spans)), 0);
  std::vector<std::int64_t> bytes;
  for (const MemoryItem& item : step.items) bytes.push_back(item.life.bytes);
  pair.send(std::as_bytes(std::span(bytes)), 0);
}

void send(ControlGroup& pair, const RankRecord& own) {
  Header header{own.arena_bytes,
                own.growth_bytes,
                own.first.seconds,
                own.steady.seconds,
                own.unrecorded_s,
                own.device,
                {}};
  own.clock.copy(header.clock.data(), header.clock.size() - 1);
  pair.send(std::as_bytes(std::span(&header, 1)), 0);
  send(pair, own.first);
  send(pair, own.steady);
}

/// \param step  of the same program; its spans and bytes become the other's
void receive(ControlGroup& pair, StepRecord& step) {
  pair.receive(std::as_writable_bytes(std::span(step.spans)), 1);
  std::vector<std::int64_t> bytes(step.items.size());
  pair.receive(std::as_writable_bytes(std::span(bytes)), 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) step.items[i].life.bytes = bytes[i];
}

/// What the other of the pair recorded. \param record  of its programs
RankRecord receive(ControlGroup& pair, RankRecord record) {
  Header header;
  pair.receive(std::as_writable_bytes(std::span(&header, 1)), 1);
  record.arena_bytes = header.arena_bytes;
  record.growth_bytes = header.growth_bytes;
  record.first.seconds = header.first_seconds;
  record.steady.seconds = header.steady_seconds;
  record.unrecorded_s = header.unrecorded_s;
  record.device = header.device;
  header.clock.back() = '\0';
  record.clock = header.clock.data();
  receive(pair, record.first);
  receive(pair, record.steady);
  return record;
}

/// Moments that follow one another, so that no difference of two overflows.
bool is_sound(const OpSpan& span) {
  return span.begin >= 0 && span.begin <= span.ready && span.ready <= span.met &&
         span.met <= span.end;
}

/// Why counts are not those of a record of a rank's programs.
std::string difference(const Counts& expected, const Counts& found) {
  return fmt::format(
      "its first and steady step have {} and {} operations and {} and {} buffers, rank 0's {} and "
      "{} and {} and {}",
      found.first_spans, found.steady_spans, found.first_items, found.steady_items,
      expected.first_spans, expected.steady_spans, expected.first_items, expected.steady_items);
}

/// What is wrong with the moments of a step; none where nothing is.
std::optional<std::string> unsound(const StepRecord& step) {
  const auto wrong = std::ranges::find_if_not(step.spans, is_sound);
  if (wrong == step.spans.end()) return std::nullopt;
  const auto op = static_cast<std::size_t>(wrong - step.spans.begin());
  return fmt::format("the moments of its operation {} do not follow one another: {}, {}, {}, {} ns",
                     name_of(step.program, step.program.operations[op]), wrong->begin, wrong->ready,
                     wrong->met, wrong->end);
}

}  // namespace

GatheredRecords gather_records(World& world, RankRecord own, const ProgramsOf& programs_of) {
  const auto pair_with = [&](std::int64_t rank) {
    return world.control_group({0, rank}, Control::records);
  };
  GatheredRecords gathered;
  if (world.rank() != 0) {
    const std::unique_ptr<ControlGroup> pair = pair_with(world.rank());
    const auto [first, mine] = exchange_counts(*pair, counts_of(own));
    if (first == mine) send(*pair, own);
    gathered.ranks.push_back(std::move(own));
    return gathered;
  }
  const auto leave_out = [&gathered](int rank, const std::string& why) {
    gathered.left_out.push_back(fmt::format("the record of rank {} is left out: {}", rank, why));
  };
  gathered.ranks.push_back(std::move(own));
  for (int rank = 1; rank < world.size(); ++rank) {
    const std::unique_ptr<ControlGroup> pair = pair_with(rank);
    RankRecord expected = programs_of ? programs_of(rank) : gathered.ranks.front();
    const auto [mine, theirs] = exchange_counts(*pair, counts_of(expected));
    if (mine != theirs) {
      leave_out(rank, difference(mine, theirs));
      continue;
    }
    RankRecord record = receive(*pair, std::move(expected));
    record.rank = rank;
    std::optional<std::string> wrong = unsound(record.first);
    if (!wrong) wrong = unsound(record.steady);
    if (wrong) {
      leave_out(rank, *wrong);
    } else {
      gathered.ranks.push_back(std::move(record));
    }
  }
  return gathered;
}

}  // namespace shardwise::exec
