#include "planner/recorded/metrics.h"

#include <fmt/format.h>

#include <limits>

#include "planner/spec/json/reader.h"

namespace shardwise {
namespace {

constexpr std::size_t kLongestLine = 1 << 16;
constexpr std::size_t kMostSteps = 10'000'000;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// JSON has no word for what is no number; runs write it as C does.
std::string without_nan(std::string line) {
  for (const std::string_view word : {":nan", ":-nan", ":inf", ":-inf"}) {
    for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at)) {
      line.replace(at, word.size(), ":null");
    }
  }
  return line;
}

}  // namespace

Diagnostics MetricsReader::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line_ += text.substr(0, end);
    if (line_.size() > kLongestLine) {
      return {{file_, lines_ + 1, 0, "", fmt::format("a line of over {} bytes", kLongestLine),
               "give a file of shardwise-run train --metrics"}};
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    ++lines_;
    Diagnostics problems = take(line_);
    line_.clear();
    if (!problems.empty()) return problems;
  }
  return {};
}

Diagnostics MetricsReader::take(const std::string& line) {
  const auto placed = [this](Diagnostics problems) {
    for (Diagnostic& each : problems) each.line = lines_;
    return problems;
  };
  const Result<JsonValue> json = parse_json(without_nan(line), file_);
  if (!json) return placed(json.problems());
  Diagnostics problems;
  ObjectReader reader(*json, file_, "", problems);
  if (lines_ == 1) {
    reader.require_schema("shardwise.metrics/1");
    note_ = reader.string_or("note", "");
    return placed(std::move(problems));
  }
  constexpr std::int64_t kMostNumber = std::int64_t{1} << 53;
  constexpr double kMost = std::numeric_limits<double>::max();
  const auto number = [&](const char* key, double least) {
    return reader.has(key) ? reader.number(key, least, kMost) : kNoNumber;
  };
  MetricsStep step;
  step.step = reader.integer("step", 0, kMostNumber);
  step.loss = number("loss", -kMost);
  step.gradient_norm = number("gradient_norm", -kMost);
  step.learning_rate = number("learning_rate", -kMost);
  step.time = Seconds(reader.number("step_time_s", 0, kMost));
  step.tokens_per_s = number("tokens_per_s", 0);
  step.held = Seconds(reader.number_or("held_by_checkpoint_s", 0, 0, kMost));
  if (!problems.empty()) return placed(std::move(problems));
  while (!steps_.empty() && steps_.back().step >= step.step) steps_.pop_back();
  if (steps_.size() == kMostSteps) {
    return {{file_, lines_, 0, "", fmt::format("more than {} steps", kMostSteps), ""}};
  }
  steps_.push_back(step);
  return {};
}

}  // namespace shardwise
