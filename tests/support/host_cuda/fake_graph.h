#pragma once

// Captures of the fake, and the graphs made of them.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/host_cuda/fake_streams.h"

namespace fake_cuda {

/// Work that was issued to the streams of one capture.
struct Capture {
  struct Step {
    std::size_t stream = 0;  // of `streams`
    MakeWork make;           // none: records or waits
    std::shared_ptr<Mark> records;
    std::shared_ptr<Mark> waits;
  };
  std::vector<cudaStream_t> streams;  // first the one that the capture began with
  std::vector<int> priorities;        // theirs
  std::vector<Step> steps;
  std::vector<std::size_t> stream_of_work;
  std::thread::id thread;
  bool broken = false;

  std::size_t index(cudaStream_t stream);
};

/// Into the capture of the stream instead of into its queue. \pre the stream is captured
void capture_work(cudaStream_t stream, MakeWork make);
void capture_record(cudaStream_t stream, const std::shared_ptr<Mark>& mark);
/// Also takes a stream into the capture that the event was recorded in.
cudaError_t capture_wait(cudaStream_t stream, const std::shared_ptr<Mark>& mark);
/// Whether a call may not be made, as this thread captures; it ends the capture.
bool forbidden(const std::string& call);
int graphs_left();

}  // namespace fake_cuda
