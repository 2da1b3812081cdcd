#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/traces/name_table.h"
#include "simulator/traces/trace_reader.h"
#include "simulator/traces/work_kind.h"

namespace shardwise::sim {

/// Categories of events that are counted; those that come after are not.
inline constexpr std::size_t kMostCategories = 100;

/// Record of a PyTorch profiler's (Kineto) trace of one rank: kernels, copies and fills of
/// the device, the runtime calls that launched them, and the host's marks. Times are nanoseconds.
/// A device event takes 40 bytes and a launch 24, however long its text was.
/// Source: pytorch/kineto@114171df, libkineto/src/output_json.cpp, include/ActivityType.h.
struct ProfilerRecord {
  struct Work {
    std::int64_t start = 0;
    std::int64_t duration = 0;
    std::int64_t correlation = -1;
    std::uint32_t name = 0;
    std::uint32_t stream = 0;  // the low half of its number
    std::int16_t device = 0;
    WorkKind kind = WorkKind::memory_bound;
    bool said = false;  // the kind is that of its "Collective name"
  };
  struct Launch {
    std::int64_t correlation = -1;
    std::int64_t at = 0;
    std::int64_t thread = -1;
  };
  enum class MarkKind : std::uint8_t {
    step,        // "ProfilerStep#4": torch/profiler/profiler.py
    backward,    // "autograd::engine::evaluate_function: …": torch/csrc/autograd/engine.cpp
    optimizer,   // "Optimizer.step#AdamW.step", "Optimizer.zero_grad#…": torch/optim/optimizer.py
    collective,  // "nccl:all_to_all": the call of a collective
  };
  struct Mark {
    MarkKind kind = MarkKind::step;
    std::int64_t thread = -1;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint32_t name = 0;
  };

  NameTable names;
  std::vector<WorkKind> kinds;  // of kernels, by name
  std::vector<Work> work;
  std::vector<Launch> launches;
  std::vector<Mark> marks;
  std::map<std::string, std::int64_t> not_read;  // events by category that means nothing to us
  std::string problem;                           // why the last event was refused

  /// Takes one event in; those that tell nothing are passed over, in any order.
  /// \returns false when the event lacks its time, or there are more than 10 million of a kind
  bool add(const TraceEvent& event);
  /// The event is a kernel, copy or fill of the device.
  static bool is_work(const TraceEvent& event);
};

}  // namespace shardwise::sim
