#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Begin of the first line of a file of metrics: docs/formats.md, "Metrics".
inline constexpr std::string_view kMetricsBegin = "{\"schema\":\"shardwise.metrics/1\"";

/// One step of a run. What the file says is no number (a loss that overflowed) is NaN.
struct MetricsStep {
  std::int64_t step = 0;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  Seconds time;
  double tokens_per_s = 0;
  Seconds held;  // by a checkpoint, after the step
};

/// Reads a file of metrics as a run writes it: piece by piece, and a line whose end is missing
/// waits for it.
class MetricsReader {
 public:
  /// \param file  the name put into diagnostics
  explicit MetricsReader(std::string file) : file_(std::move(file)) {}

  /// The next bytes of the file. \returns what is wrong with the first line that is none; it and
  /// what follows it are not read
  Diagnostics add(std::string_view text);

  /// In the order of their numbers: a run that resumed says its steps again.
  const std::vector<MetricsStep>& steps() const { return steps_; }
  /// Why its times mean nothing; empty where they do.
  const std::string& note() const { return note_; }
  /// Half a line was read.
  bool waits() const { return !line_.empty(); }

 private:
  Diagnostics take(const std::string& line);

  std::string file_;
  std::string line_;  // of which the end is missing
  int lines_ = 0;
  std::string note_;
  std::vector<MetricsStep> steps_;
};

}  // namespace shardwise
