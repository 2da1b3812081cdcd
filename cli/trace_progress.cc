#include "cli/trace_progress.h"

#include <fmt/format.h>

#include <cstdint>

#include "cli/progress.h"
#include "planner/spec/text/format.h"
#include "simulator/traces/trace_file.h"

namespace shardwise::cli {

Result<sim::TracedRun> read_trace(const std::string& path) {
  Progress progress;
  sim::TraceListener listener;
  listener.say = [&](std::int64_t read, std::int64_t size) {
    const double share = size > 0 ? static_cast<double>(read) / static_cast<double>(size) : 0;
    progress.say(fmt::format("{} of {} read", format_percent(share), path));
    return true;
  };
  return sim::read_trace_file(path, listener);
}

}  // namespace shardwise::cli
