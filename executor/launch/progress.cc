#include "executor/launch/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "planner/files/atomic_file_set.h"
#include "planner/files/output_place.h"
#include "planner/recorded/metrics.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/format.h"

namespace shardwise::exec {

namespace {

constexpr std::string_view kStepKey = "{\"step\":";

/// Cuts a file behind what a run that goes on leaves of it. \returns whether anything is left
bool cut_metrics(const std::string& path, std::int64_t first_step) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a pipe has nothing to keep
  std::ifstream text(path, std::ios::binary);
  if (!text.is_open()) return false;
  const std::int64_t kept = kept_metrics(text, first_step);
  if (kept > 0) std::filesystem::resize_file(path, static_cast<std::uintmax_t>(kept), error);
  if (error) throw IoError(fmt::format("{} cannot be written: {}", path, error.message()));
  return kept > 0;
}

}  // namespace

std::int64_t kept_metrics(std::istream& text, std::int64_t first_step) {
  std::int64_t kept = 0;
  std::string line;
  // A line that the end of the file cuts short sets eof.
  while (std::getline(text, line) && !text.eof()) {
    if (kept == 0) {
      if (!line.starts_with(kMetricsBegin)) return 0;
    } else {
      std::int64_t step = -1;
      if (line.starts_with(kStepKey)) {
        std::from_chars(line.data() + kStepKey.size(), line.data() + line.size(), step);
      }
      if (step < 0 || step >= first_step) return kept;
    }
    kept += std::ssize(line) + 1;
  }
  return kept;
}

Progress::Progress(std::int64_t steps, std::int64_t tokens_a_step, const std::string& metrics,
                   std::int64_t first_step, const std::string& note)
    : steps_(steps), tokens_(tokens_a_step), name_(metrics) {
  if (metrics.empty()) return;
  const bool goes_on = first_step > 0 && cut_metrics(metrics, first_step);
  const OutputPlace place = find_output(metrics);
  if (place.kind == OutputPlace::Kind::descriptor) {
    const bool printed = place.descriptor == STDOUT_FILENO;
    const int own = ::dup(printed ? standard_output() : place.descriptor);
    metrics_.reset(own < 0 ? nullptr : ::fdopen(own, "w"));
  } else if (place.kind == OutputPlace::Kind::stream) {
    metrics_.reset(::fdopen(open_stream(metrics, place.path), "w"));
  } else {
    metrics_.reset(std::fopen(metrics.c_str(), goes_on ? "a" : "w"));
  }
  if (!metrics_) {
    throw IoError(fmt::format("{} cannot be written: {}", metrics, std::strerror(errno)));
  }
  if (goes_on) return;
  fmt::print(metrics_.get(), "{}{}}}\n", kMetricsBegin,
             note.empty() ? "" : fmt::format(",\"note\":\"{}\"", note));
}

void Progress::step(const StepResult& result, double held_s) {
  spent_ += result.seconds + held_s;
  ++ran_;
  const std::int64_t done = result.step + 1;
  const double left = spent_ / static_cast<double>(ran_) * static_cast<double>(steps_ - done);
  const double rate = static_cast<double>(tokens_) / result.seconds;
  const auto width = std::to_string(steps_).size();
  fmt::print("step {:>{}}/{}  loss {:.6f}  gradient norm {:.4f}  {} tokens/s  {}{}\n", done, width,
             steps_, result.loss, result.gradient_norm,
             format_count(static_cast<std::int64_t>(rate)), format_seconds(Seconds(result.seconds)),
             done < steps_ ? fmt::format("  {} remaining", format_seconds(Seconds(left))) : "");
  std::fflush(stdout);
  if (!metrics_) return;
  // Every digit: a loss that is read back is the one that was computed.
  fmt::print(metrics_.get(),
             "{{\"step\":{},\"loss\":{},\"gradient_norm\":{},\"learning_rate\":{},"
             "\"step_time_s\":{},\"tokens_per_s\":{},\"held_by_checkpoint_s\":{}}}\n",
             result.step, result.loss, result.gradient_norm, result.learning_rate, result.seconds,
             rate, held_s);
  if (std::fflush(metrics_.get()) != 0) {
    throw IoError(fmt::format("{} cannot be written: {}", name_, std::strerror(errno)));
  }
}

}  // namespace shardwise::exec
