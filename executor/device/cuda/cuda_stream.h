#pragma once

#include <cuda_runtime_api.h>

#include "executor/device/cuda/cuda_error.h"
#include "executor/device/device.h"

namespace shardwise::exec {

/// A stream that the default stream does not block.
class CudaStream : public DeviceStream {
 public:
  CudaStream(const CudaCalls& calls, StreamPriority priority);
  ~CudaStream() override;

  /// Calls of the rank whose stream it is.
  const CudaCalls& calls() const { return calls_; }
  cudaStream_t handle() const { return handle_; }
  /// Waits for all of it.
  void synchronize() const;

 private:
  CudaCalls calls_;
  cudaStream_t handle_ = nullptr;
};

/// \pre the stream is one of a CudaDevice
inline CudaStream& cuda_stream(DeviceStream& stream) { return static_cast<CudaStream&>(stream); }

class CudaEvent : public DeviceEvent {
 public:
  /// \param timed  elapsed time is asked of it, which costs the device a little
  CudaEvent(const CudaCalls& calls, bool timed);
  ~CudaEvent() override;

  void record(const CudaStream& stream) { record(stream.handle()); }
  void record(cudaStream_t stream);
  /// Has the stream wait, for nothing where the event was never recorded.
  void hold(const CudaStream& stream) const;
  /// Whether what it stands for is over.
  bool over() const;
  /// Waits for it.
  void synchronize() const;
  /// Nanoseconds from `begin`, timed as this and over as this, to this; ± 0.5 µs.
  std::int64_t since(const CudaEvent& begin) const;

 private:
  CudaCalls calls_;
  cudaEvent_t handle_ = nullptr;
};

}  // namespace shardwise::exec
