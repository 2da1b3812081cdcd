#include "executor/calibrate/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <span>
#include <vector>

#include "executor/engine/program_runner.h"

namespace shardwise::exec {
namespace {

constexpr int kRuns = 3;
constexpr double kMostCalls = 1e6;

double seconds_since(std::int64_t begin) { return static_cast<double>(now_ns() - begin) * 1e-9; }

/// Of the calling thread.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Stopwatch::Stopwatch(World& world, int threads, int cores, double least_s)
    : one_thread_(threads == 1),
      share_(std::max(1.0, static_cast<double>(world.size()) / cores)),
      least_s_(least_s) {
  everyone_ = world.control_group(all_ranks(world), Control::runs);
}

std::vector<double> Stopwatch::all_of(double mine) {
  std::vector<double> all(static_cast<std::size_t>(everyone_->size()));
  everyone_->all_gather_bytes(std::as_bytes(std::span<const double>(&mine, 1)),
                              std::as_writable_bytes(std::span<double>(all)));
  return all;
}

double Stopwatch::timed(const std::function<void()>& call, bool computes) {
  call();  // memory that is touched for the first time, code that is loaded
  all_of(0);
  const std::int64_t first = now_ns();
  call();
  const double once = std::max(1e-9, std::ranges::max(all_of(seconds_since(first))));
  const double wanted = std::ceil(least_s_ / once);
  const auto calls = static_cast<std::int64_t>(std::clamp(wanted, 1.0, kMostCalls));
  double least = HUGE_VAL;
  for (int run = 0; run < kRuns; ++run) {
    all_of(0);
    const double computed = processor_seconds();
    const std::int64_t begin = now_ns();
    for (std::int64_t i = 0; i < calls; ++i) call();
    const double mine = computes ? processor_seconds() - computed : seconds_since(begin);
    const std::vector<double> all = all_of(mine);
    const double mean =
        std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
    const double run_s = computes ? mean * share_ : std::ranges::max(all);
    least = std::min(least, run_s / static_cast<double>(calls));
  }
  return std::max(least, 1e-9);
}

double Stopwatch::seconds(const std::function<void()>& call) { return timed(call, false); }

double Stopwatch::computing(const std::function<void()>& call) { return timed(call, one_thread_); }

}  // namespace shardwise::exec
