#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/recorded/recorded_step.h"

namespace shardwise {

/// Receives a text piece by piece.
using TextSink = std::function<void(std::string_view)>;

/// Writes recorded steps of one clock as a Chrome trace that Perfetto and chrome://tracing open;
/// docs/formats.md, "Traces". A process for each rank, a thread for each stream, a complete event
/// for each operation, flow arrows for waits and messages, counters. Moments are seconds.
class TraceWriter {
 public:
  /// \param origin  "predicted" or "measured"  \param note  about all of it; may be empty
  /// \pre the note has nothing to escape
  TraceWriter(std::string_view origin, std::string_view plan_digest, Granularity granularity,
              TextSink sink, std::string_view note = {});

  /// \param pid  number of the rank's process in the trace
  void rank(std::size_t pid, std::int64_t rank, const RecordedStep& step);
  void memory(std::size_t pid, double at, std::int64_t allocated, std::int64_t reserved);
  /// How much of a link tier the running transfers would fill.
  void link(std::size_t pid, std::string_view tier, double at, double percent);

  /// From a send to its receive.
  void message(std::size_t sender, const RecordedSpan& sent, std::size_t receiver,
               const RecordedSpan& received);

  /// Ends the trace. Nothing may follow.
  void finish();

 private:
  /// A moment in a thread of a process, in nanoseconds.
  struct End {
    std::size_t pid = 0;
    int lane = 0;
    std::int64_t at = 0;
  };

  template <class... Values>
  void event(const char* format, const Values&... values);
  const std::vector<std::string>& names_of(const StageProgram& program);
  void sort_index(const char* kind, std::size_t pid, int lane, std::int64_t index);
  void arguments(const StageProgram& program, const ProgramOp& op, const RecordedSpan& span);
  void arrow(const End& from, const End& to);

  TextSink sink_;
  std::map<const StageProgram*, std::vector<std::string>> names_;  // of operations
  std::string text_;
  bool first_ = true;
  std::uint64_t arrows_ = 0;
};

}  // namespace shardwise
