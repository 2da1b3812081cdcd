#include "executor/device/cuda/cuda_stream.h"

#include <cmath>

namespace shardwise::exec {

CudaStream::CudaStream(const CudaCalls& calls, StreamPriority priority) : calls_(calls) {
  int least = 0;
  int greatest = 0;
  calls.check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
              "cudaDeviceGetStreamPriorityRange");
  calls.check(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking,
                                           priority == StreamPriority::high ? greatest : least),
              "cudaStreamCreateWithPriority");
}

CudaStream::~CudaStream() { static_cast<void>(cudaStreamDestroy(handle_)); }

void CudaStream::synchronize() const {
  calls_.check(cudaStreamSynchronize(handle_), "cudaStreamSynchronize");
}

CudaEvent::CudaEvent(const CudaCalls& calls, bool timed) : calls_(calls) {
  calls.check(cudaEventCreateWithFlags(&handle_, timed ? cudaEventDefault : cudaEventDisableTiming),
              "cudaEventCreateWithFlags");
}

CudaEvent::~CudaEvent() { static_cast<void>(cudaEventDestroy(handle_)); }

void CudaEvent::record(cudaStream_t stream) {
  calls_.check(cudaEventRecord(handle_, stream), "cudaEventRecord");
}

void CudaEvent::hold(const CudaStream& stream) const {
  // The event may be another rank's.
  stream.calls().check(cudaStreamWaitEvent(stream.handle(), handle_, 0), "cudaStreamWaitEvent");
}

bool CudaEvent::over() const {
  const cudaError_t result = cudaEventQuery(handle_);
  if (result == cudaErrorNotReady) return false;
  calls_.check(result, "cudaEventQuery");
  return true;
}

void CudaEvent::synchronize() const {
  calls_.check(cudaEventSynchronize(handle_), "cudaEventSynchronize");
}

std::int64_t CudaEvent::since(const CudaEvent& begin) const {
  float milliseconds = 0;
  calls_.check(cudaEventElapsedTime(&milliseconds, begin.handle_, handle_), "cudaEventElapsedTime");
  return std::llround(1e6 * static_cast<double>(milliseconds));
}

}  // namespace shardwise::exec
