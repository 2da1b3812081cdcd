#include "executor/kernels/cuda/event_clock.h"

#include <algorithm>
#include <random>

namespace shardwise::exec {

EventClock::EventClock(Device& device, double seconds_each)
    : device_(device),
      stream_(device.stream(StreamPriority::normal)),
      calls_(cuda_stream(*stream_).calls()),
      begin_(calls_, true),
      end_(calls_, true),
      seconds_each_(seconds_each),
      random_(std::size_t{1} << 20) {
  std::mt19937 draw(1234);
  for (std::uint32_t& each : random_) each = static_cast<std::uint32_t>(draw());
}

void EventClock::fill(std::span<std::byte> memory, DType dtype) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  const std::size_t words = std::min(random_.size(), (memory.size() + kWord - 1) / kWord);
  std::vector<std::uint32_t> block(random_.begin(), random_.begin() + std::ptrdiff_t(words));
  const bool halves = dtype == DType::bf16;
  for (std::uint32_t& each : block) {
    each = halves ? (each & 0x81ff81ffU) | 0x3e003e00U : (each & 0x81ffffffU) | 0x3e000000U;
  }
  std::size_t filled = std::min(memory.size(), words * kWord);
  device_.upload(memory.data(), std::as_bytes(std::span(block)).first(filled), *stream_);
  while (filled < memory.size()) {
    const std::size_t more = std::min(filled, memory.size() - filled);
    calls_.check(cudaMemcpyAsync(memory.data() + filled, memory.data(), more,
                                 cudaMemcpyDeviceToDevice, stream()),
                 "cudaMemcpyAsync");
    filled += more;
  }
  device_.synchronize(*stream_);
}

double EventClock::seconds(const std::function<void()>& issue) {
  constexpr int kWarm = 3;
  constexpr double kSample = 2e-3;  // far more than an event's resolution
  for (int i = 0; i < kWarm; ++i) issue();
  const double once = std::max(time_of(issue, 1), 1e-6);
  const int together =
      static_cast<int>(std::clamp(std::min(kSample, seconds_each_) / once, 1.0, 100.0));
  const auto samples =
      static_cast<std::size_t>(std::clamp(seconds_each_ / (once * together), 5.0, 10000.0));
  std::vector<double> times;
  while (times.size() < samples) times.push_back(time_of(issue, together) / together);
  repeats_ = static_cast<std::int64_t>(samples) * together;
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  return std::max(times[times.size() / 2], 1e-9);  // below what events tell apart
}

double EventClock::time_of(const std::function<void()>& issue, int times) {
  begin_.record(stream());
  for (int i = 0; i < times; ++i) issue();
  end_.record(stream());
  end_.synchronize();
  return 1e-9 * static_cast<double>(end_.since(begin_));
}

}  // namespace shardwise::exec
