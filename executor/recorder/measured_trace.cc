#include "executor/recorder/measured_trace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include "planner/recorded/trace_writer.h"

namespace shardwise::exec {
namespace {

void write_memory(TraceWriter& writer, const RankRecord& rank, std::int64_t zero) {
  std::int64_t now = 0;
  for (const MemoryItem& item : rank.steady.items) {
    if (item.from_start()) now += item.life.bytes;
  }
  for (const MemoryChange& change : memory_changes(rank.steady)) {
    now += change.bytes;
    writer.memory(static_cast<std::size_t>(rank.rank), seconds(change.at - zero).value(), now,
                  rank.arena_bytes);
  }
}

}  // namespace

std::string measured_trace(const Plan& plan, const std::vector<RankRecord>& ranks,
                           const std::string& note) {
  std::map<std::string, std::int64_t> begins;  // by clock
  for (const RankRecord& rank : ranks) {
    const auto [at, fresh] = begins.try_emplace(rank.clock, begin_of(rank.steady));
    at->second = std::min(at->second, begin_of(rank.steady));
  }
  std::string text;
  TraceWriter writer(
      "measured", digest(plan), Granularity::layer,
      [&text](std::string_view piece) { text += piece; }, note);
  for (const RankRecord& rank : ranks) {
    const std::int64_t begin = begins.at(rank.clock);
    writer.rank(static_cast<std::size_t>(rank.rank), rank.rank, recorded(rank.steady, begin));
    write_memory(writer, rank, begin);
  }
  writer.finish();
  return text;
}

}  // namespace shardwise::exec
