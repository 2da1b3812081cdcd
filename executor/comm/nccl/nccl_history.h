#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/awake_clock.h"
#include "executor/device/cuda/cuda_stream.h"

namespace shardwise::exec {

/// The last operations of a communicator, and how long the oldest that is not over has been that.
/// Operations of a graph have no events of their own: they are listed when they are captured, and
/// never late. One thread at a time.
class NcclHistory {
 public:
  explicit NcclHistory(const CudaCalls& calls) : calls_(calls) {}

  /// An operation is issued. \param what  lives for ever  \param count  elements
  void add(const char* what, std::size_t count) { past_[issued_++ % kKept] = {what, count}; }
  /// It is issued to this stream: an event stands for its end. \throws CudaError
  void follow(const CudaStream& stream);

  struct Oldest {
    std::string what;  // "ncclAllReduce of 16 elements (number 3)"
    double seconds = 0;
  };
  /// The oldest operation that is not over, and for how long nothing of the communicator has ended.
  /// \throws CudaError: also what has gone wrong on the device
  std::optional<Oldest> oldest();
  /// The latest first: "ncclAllReduce of 16 elements (number 3), …".
  std::string describe() const;

 private:
  static constexpr std::size_t kKept = 4;
  struct Past {
    const char* what = nullptr;
    std::size_t count = 0;
  };
  struct UnderWay {
    Past operation;
    std::uint64_t number = 0;
    std::unique_ptr<CudaEvent> end;
    AwakeClock::time_point since;
  };
  static std::string text_of(const Past& past, std::uint64_t number);

  CudaCalls calls_;
  std::array<Past, kKept> past_{};
  std::uint64_t issued_ = 0;
  std::deque<UnderWay> under_way_;  // the oldest first
  std::vector<std::unique_ptr<CudaEvent>> spare_;
  AwakeClock::time_point ended_;  // when one of them was last seen to be over
};

}  // namespace shardwise::exec
