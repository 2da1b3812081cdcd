#include "tests/bench/event_clock.h"

#include <algorithm>
#include <random>

namespace shardwise::exec {

EventClock::EventClock(CudaDevice& device, double seconds_each)
    : device_(device),
      stream_(CudaCalls(0), StreamPriority::normal),
      begin_(CudaCalls(0), true),
      end_(CudaCalls(0), true),
      seconds_each_(seconds_each),
      random_(std::size_t{1} << 20) {
  std::mt19937 draw(1234);
  for (std::uint32_t& each : random_) each = static_cast<std::uint32_t>(draw());
}

void EventClock::fill(std::span<std::byte> memory, DType dtype) {
  std::vector<std::uint32_t> block(random_);
  const bool halves = dtype == DType::bf16;
  for (std::uint32_t& each : block) {
    each = halves ? (each & 0x81ff81ffU) | 0x3e003e00U : (each & 0x81ffffffU) | 0x3e000000U;
  }
  const auto whole = std::as_bytes(std::span(block));
  for (std::size_t at = 0; at < memory.size(); at += whole.size()) {
    device_.upload(memory.data() + at, whole.first(std::min(whole.size(), memory.size() - at)),
                   stream_);
  }
  stream_.synchronize();
}

double EventClock::seconds(const std::function<void()>& issue) {
  constexpr int kWarm = 3;
  constexpr double kSample = 2e-3;
  for (int i = 0; i < kWarm; ++i) issue();
  const double once = std::max(time_of(issue, 1), 1e-6);
  const int together = static_cast<int>(std::clamp(kSample / once, 1.0, 100.0));
  const auto samples =
      static_cast<std::size_t>(std::clamp(seconds_each_ / (once * together), 5.0, 10000.0));
  std::vector<double> times;
  while (times.size() < samples) times.push_back(time_of(issue, together) / together);
  repeats_ = static_cast<std::int64_t>(samples) * together;
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  return times[times.size() / 2];
}

double EventClock::time_of(const std::function<void()>& issue, int times) {
  begin_.record(stream_);
  for (int i = 0; i < times; ++i) issue();
  end_.record(stream_);
  end_.synchronize();
  return 1e-9 * static_cast<double>(end_.since(begin_));
}

}  // namespace shardwise::exec
