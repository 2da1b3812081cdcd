#pragma once

#include <cstdint>
#include <string>

#include "planner/recorded/metrics.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

/// Reads what a run adds to its file of metrics. A file that became shorter is begun anew, as a run
/// that resumes cuts it.
class MetricsFollower {
 public:
  explicit MetricsFollower(std::string path);

  /// \returns whether something was added, or what is wrong: the file, or a line of it
  Result<bool> poll();

  const MetricsReader& reader() const { return reader_; }

 private:
  std::string path_;
  std::int64_t read_ = 0;  // bytes
  MetricsReader reader_;
};

}  // namespace shardwise::view
