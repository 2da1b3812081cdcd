#include "executor/recorder/gather_records.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace shardwise::exec {
namespace {

/// How much a rank recorded: of one program all ranks have the same.
struct Counts {
  std::int64_t spans = 0;
  std::int64_t items = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// What is sent before spans and the bytes of items.
struct Header {
  std::int64_t arena_bytes = 0;
  std::int64_t growth_bytes = 0;
  double seconds = 0;
  double unrecorded_s = 0;
  std::array<char, 40> clock{};  // 36 characters, the rest zeros
};
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<OpSpan>);

/// Whether the two of a pair recorded as much.
bool are_alike(ControlGroup& pair, const RankRecord& own) {
  const Counts mine = {static_cast<std::int64_t>(own.steady.spans.size()),
                       static_cast<std::int64_t>(own.steady.items.size())};
  std::array<Counts, 2> both;
  pair.all_gather_bytes(std::as_bytes(std::span(&mine, 1)),
                        std::as_writable_bytes(std::span(both)));
  return both[0] == both[1];
}

void send(ControlGroup& pair, const RankRecord& own) {
  Header header{own.arena_bytes, own.growth_bytes, own.steady.seconds, own.unrecorded_s, {}};
  own.clock.copy(header.clock.data(), header.clock.size() - 1);
  pair.send(std::as_bytes(std::span(&header, 1)), 0);
  pair.send(std::as_bytes(std::span(own.steady.spans)), 0);
  std::vector<std::int64_t> bytes;
  for (const MemoryItem& item : own.steady.items) bytes.push_back(item.life.bytes);
  pair.send(std::as_bytes(std::span(bytes)), 0);
}

/// Moments that follow one another, so that no difference of two overflows.
bool is_sound(const OpSpan& span) {
  return span.begin >= 0 && span.begin <= span.ready && span.ready <= span.met &&
         span.met <= span.end;
}

/// What the other of the pair recorded, of the same program as `own`.
RankRecord receive(ControlGroup& pair, const RankRecord& own) {
  Header header;
  pair.receive(std::as_writable_bytes(std::span(&header, 1)), 1);
  RankRecord record;
  record.steady = own.steady;
  record.steady.seconds = header.seconds;
  record.unrecorded_s = header.unrecorded_s;
  record.arena_bytes = header.arena_bytes;
  record.growth_bytes = header.growth_bytes;
  header.clock.back() = '\0';
  record.clock = header.clock.data();
  pair.receive(std::as_writable_bytes(std::span(record.steady.spans)), 1);
  std::vector<std::int64_t> bytes(record.steady.items.size());
  pair.receive(std::as_writable_bytes(std::span(bytes)), 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) record.steady.items[i].life.bytes = bytes[i];
  return record;
}

}  // namespace

std::vector<RankRecord> gather_records(World& world, RankRecord own) {
  const auto pair_with = [&](std::int64_t rank) {
    return world.control_group({0, rank}, Control::records);
  };
  if (world.rank() != 0) {
    const std::unique_ptr<ControlGroup> pair = pair_with(world.rank());
    if (are_alike(*pair, own)) send(*pair, own);
    return {std::move(own)};
  }
  std::vector<RankRecord> records = {std::move(own)};
  for (int rank = 1; rank < world.size(); ++rank) {
    const std::unique_ptr<ControlGroup> pair = pair_with(rank);
    if (!are_alike(*pair, records.front())) continue;
    RankRecord record = receive(*pair, records.front());
    record.rank = rank;
    if (std::ranges::all_of(record.steady.spans, is_sound)) records.push_back(std::move(record));
  }
  return records;
}

}  // namespace shardwise::exec
