#pragma once

// A job of threads whose GPUs and NCCL are the fakes.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "executor/comm/nccl/nccl_world.h"
#include "executor/device/cuda/cuda_stream.h"

namespace shardwise::exec::test {

/// The fake's functions.
NcclLibrary fake_library();

/// Two pages that NCCL gave.
class MappableMemory {
 public:
  MappableMemory();
  ~MappableMemory();
  MappableMemory(const MappableMemory&) = delete;
  MappableMemory& operator=(const MappableMemory&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), kBytes}; }

 private:
  static constexpr std::size_t kBytes = 8192;
  void* memory_ = nullptr;
};

struct FakeJob {
  int ranks = 2;
  std::uint64_t seed = 0;  // of the order in which streams run
  NcclPolicy policy = {};
  std::int64_t restart_of_rank_1 = 0;
  double timeout_s = 60;
  /// Rank 0 alone waits for streams in the end: the others have issued what they ever will.
  bool one_waits = false;
};
/// Runs `body` on every rank and waits for its streams. \returns why the run failed, empty when it
/// did not
std::string run_fake(const FakeJob& job, const std::function<void(NcclWorld&, CudaStream&)>& body,
                     const std::function<void()>& before = {});

}  // namespace shardwise::exec::test
