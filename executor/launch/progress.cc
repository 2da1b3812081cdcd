#include "executor/launch/progress.h"

#include <fmt/format.h>

#include "planner/spec/error.h"
#include "planner/spec/format.h"

namespace shardwise::exec {

Progress::Progress(std::int64_t steps, std::int64_t tokens_a_step, const std::string& metrics)
    : steps_(steps), tokens_(tokens_a_step), name_(metrics) {
  if (metrics.empty()) return;
  metrics_.reset(std::fopen(metrics.c_str(), "w"));
  if (!metrics_) throw IoError(fmt::format("{} cannot be written", metrics));
  fmt::print(metrics_.get(), "{{\"schema\":\"shardwise.metrics/1\"}}\n");
}

void Progress::step(const StepResult& result) {
  spent_ += result.seconds;
  ++ran_;
  const std::int64_t done = result.step + 1;
  const double left = spent_ / static_cast<double>(ran_) * static_cast<double>(steps_ - done);
  const double rate = static_cast<double>(tokens_) / result.seconds;
  const auto width = std::to_string(steps_).size();
  fmt::print("step {:>{}}/{}  loss {:.6f}  gradient norm {:.4f}  {} tokens/s  {}{}\n", done, width,
             steps_, result.loss, result.gradient_norm,
             format_count(static_cast<std::int64_t>(rate)), format_seconds(Seconds(result.seconds)),
             done < steps_ ? fmt::format("  {} left", format_seconds(Seconds(left))) : "");
  std::fflush(stdout);
  if (!metrics_) return;
  // Every digit: a loss that is read back is the one that was computed.
  fmt::print(metrics_.get(),
             "{{\"step\":{},\"loss\":{},\"gradient_norm\":{},\"learning_rate\":{},"
             "\"step_time_s\":{},\"tokens_per_s\":{}}}\n",
             result.step, result.loss, result.gradient_norm, result.learning_rate, result.seconds,
             rate);
  if (std::fflush(metrics_.get()) != 0) throw IoError(fmt::format("{} cannot be written", name_));
}

}  // namespace shardwise::exec
