#include "executor/comm/nccl/nccl_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace shardwise::exec {

void NcclHistory::follow(const CudaStream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  calls_.check(cudaStreamIsCapturing(stream.handle(), &status), "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone) return;
  std::unique_ptr<CudaEvent> end;
  if (spare_.empty()) {
    end = std::make_unique<CudaEvent>(calls_, false);
  } else {
    end = std::move(spare_.back());
    spare_.pop_back();
  }
  end->record(stream);
  const std::uint64_t number = issued_ - 1;
  under_way_.push_back({past_[number % kKept], number, std::move(end), AwakeClock::now()});
}

std::optional<NcclHistory::Oldest> NcclHistory::oldest() {
  const AwakeClock::time_point now = AwakeClock::now();
  while (!under_way_.empty() && under_way_.front().end->over()) {
    spare_.push_back(std::move(under_way_.front().end));
    under_way_.pop_front();
    ended_ = now;
  }
  if (under_way_.empty()) return std::nullopt;
  const UnderWay& first = under_way_.front();
  const std::chrono::duration<double> spent = now - std::max(first.since, ended_);
  return Oldest{text_of(first.operation, first.number), spent.count()};
}

std::string NcclHistory::describe() const {
  if (issued_ == 0) return "nothing issued";
  std::string text;
  const std::uint64_t shown = std::min<std::uint64_t>(issued_, kKept);
  for (std::uint64_t i = 1; i <= shown; ++i) {
    const std::uint64_t number = issued_ - i;
    text += (i == 1 ? "" : ", ") + text_of(past_[number % kKept], number);
  }
  return text;
}

std::string NcclHistory::text_of(const Past& past, std::uint64_t number) {
  return fmt::format("{} of {} elements (number {})", past.what, past.count, number);
}

}  // namespace shardwise::exec
