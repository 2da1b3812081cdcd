#pragma once

// Parts that the calls of the fake share.
#include <mutex>
#include <string>

#include "tests/support/host_cuda/fake_streams.h"

namespace fake_cuda {

/// A call in progress: counted, alone, and seen by no sanitizer. What the host did before it is
/// before what it issues.
class Call {
 public:
  explicit Call(const char* name);
  /// That the call shall return, cudaSuccess: none.
  cudaError_t error() const { return error_; }
  void* issued() const { return issued_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  struct Release {
    explicit Release(void* edge) { host_cuda::release(edge); }
  };
  void* issued_;
  Release released_;  // before nothing is watched any more
  Unwatched unwatched_;
  std::unique_lock<std::mutex> lock_;
  cudaError_t error_ = cudaSuccess;
};

/// Does within a call what `enqueue` asks.
cudaError_t issue(cudaStream_t stream, const std::string& call, void* issued, MakeWork make);
const Machine& the_machine();
/// The number, on the machine, of a GPU that the calling thread sees, and how many it sees.
int gpu_seen(int device);
int gpus_seen();
/// The calling thread has chosen a GPU.
void choose();
/// Memory of the device that other GPUs may map. `give_back` says what gives it back, in messages.
cudaError_t take_mappable(void** at, std::size_t bytes);
cudaError_t give_back_mappable(const char* call, void* at);
/// Whether a call has failed because a test said so: what follows may be left half done.
bool has_failed();
int events_left();
int blocks_left();
void forget_runtime();

}  // namespace fake_cuda
