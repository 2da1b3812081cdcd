#include "tests/support/host_cuda/fake_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "tests/support/host_cuda/fake_calls.h"

using fake_cuda::Capture;
using fake_cuda::Mark;
using fake_cuda::Streams;
using fake_cuda::Unwatched;

struct CUgraph_st {
  std::shared_ptr<Capture> capture;
};

struct CUgraphExec_st {
  std::shared_ptr<Capture> capture;
  std::vector<cudaStream_t> streams;  // of its own, one for each captured
  std::int64_t launches = 0;
};

namespace fake_cuda {
namespace {

std::vector<std::shared_ptr<Capture>> captures;  // not ended
int graphs = 0;

bool at(const std::vector<bool>& set, std::size_t i) { return i < set.size() && set[i]; }

void join(std::vector<bool>& into, const std::vector<bool>& other) {
  into.resize(std::max(into.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = into[i] || other[i];
}

}  // namespace

std::size_t Capture::index(cudaStream_t stream) {
  const auto found = std::ranges::find(streams, stream);
  if (found == streams.end()) {
    streams.push_back(stream);
    priorities.push_back(stream->priority);
    return streams.size() - 1;
  }
  return static_cast<std::size_t>(found - streams.begin());
}

void capture_work(cudaStream_t stream, MakeWork make) {
  Capture& capture = *stream->capture;
  const std::size_t work = capture.stream_of_work.size();
  stream->follows.resize(work + 1);
  stream->follows[work] = true;
  capture.stream_of_work.push_back(capture.index(stream));
  capture.steps.push_back({capture.index(stream), std::move(make), nullptr, nullptr});
}

void capture_record(cudaStream_t stream, const std::shared_ptr<Mark>& mark) {
  mark->captured = true;
  mark->capture = stream->capture;
  mark->follows = stream->follows;
  stream->capture->steps.push_back({stream->capture->index(stream), {}, mark, nullptr});
}

cudaError_t capture_wait(cudaStream_t stream, const std::shared_ptr<Mark>& mark) {
  const auto refuse = [&](const char* why, cudaError_t error) {
    if (stream->capture) stream->capture->broken = true;
    complain("stream " + std::to_string(stream->id) + why);
    return error;
  };
  if (!mark->captured) {
    return refuse(", captured, waits for an event from outside", cudaErrorStreamCaptureIsolation);
  }
  const std::shared_ptr<Capture> from = mark->capture.lock();
  const bool going_on = from && std::ranges::find(captures, from) != captures.end();
  if (!going_on || (stream->capture && stream->capture != from)) {
    return refuse(" waits for an event of another capture", cudaErrorCapturedEvent);
  }
  stream->capture = from;
  join(stream->follows, mark->follows);
  stream->capture->steps.push_back({stream->capture->index(stream), {}, nullptr, mark});
  return cudaSuccess;
}

bool forbidden(const std::string& call) {
  const auto mine = std::ranges::find(captures, std::this_thread::get_id(),
                                      [](const auto& each) { return each->thread; });
  if (mine == captures.end()) return false;
  (*mine)->broken = true;
  complain(call + " while a stream is captured");
  return true;
}

int graphs_left() { return graphs; }

}  // namespace fake_cuda

using fake_cuda::captures;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  if (const int error = fake_cuda::failure(__func__)) return static_cast<cudaError_t>(error);
  if (stream->capture || mode == cudaStreamCaptureModeGlobal) {
    fake_cuda::complain(stream->capture ? "a stream is captured twice"
                                        : "a global capture, which other threads' calls end");
    return cudaErrorIllegalState;
  }
  stream->capture = std::make_shared<Capture>();
  static_cast<void>(stream->capture->index(stream));
  stream->capture->thread = std::this_thread::get_id();
  captures.push_back(stream->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  *status = stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return static_cast<cudaError_t>(fake_cuda::failure(__func__));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->streams.front() != stream) {
    fake_cuda::complain("ends a capture that did not begin with this stream");
    return cudaErrorIllegalState;
  }
  std::erase(captures, capture);
  const int error = fake_cuda::failure(__func__);
  bool joined = true;
  for (std::size_t work = 0; work < capture->stream_of_work.size(); ++work) {
    if (fake_cuda::at(stream->follows, work)) continue;
    const int id = capture->streams[capture->stream_of_work[work]]->id;
    if (joined && !fake_cuda::has_failed()) {
      fake_cuda::complain("stream " + std::to_string(id) + " is not joined to the capture's");
    }
    joined = false;
  }
  for (const cudaStream_t each : capture->streams) {
    each->capture = nullptr;
    each->follows.clear();
  }
  if (error != 0) return static_cast<cudaError_t>(error);
  if (capture->broken) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{capture};
  ++fake_cuda::graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  if (const int error = fake_cuda::failure(__func__)) return static_cast<cudaError_t>(error);
  const std::vector<int>& priorities = graph->capture->priorities;
  const bool mixed =
      std::ranges::adjacent_find(priorities, std::not_equal_to<>()) != priorities.end();
  if (mixed && (flags & cudaGraphInstantiateFlagUseNodePriority) == 0) {
    fake_cuda::complain("a graph of streams of several priorities runs at one of them");
    return cudaErrorInvalidValue;
  }
  *exec = new CUgraphExec_st{graph->capture, {}, 0};
  for (std::size_t i = 0; i < graph->capture->streams.size(); ++i) {
    (*exec)->streams.push_back(Streams::all().open());
    (*exec)->streams.back()->of_graph = true;
  }
  ++fake_cuda::graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  void* const issued = host_cuda::new_edge();
  host_cuda::release(issued);
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  if (const int error = fake_cuda::failure(__func__)) return static_cast<cudaError_t>(error);
  std::map<const Mark*, std::shared_ptr<Mark>> marks;  // every launch has events of its own
  const auto put = [&](cudaStream_t to, fake_cuda::Work work, std::shared_ptr<Mark> records,
                       std::shared_ptr<Mark> waits) {
    Streams::all().put(to, {std::move(work), std::move(records), std::move(waits), issued});
  };
  const auto begin = std::make_shared<Mark>();
  const auto end = std::make_shared<Mark>();
  put(stream, {"a graph's begin", {}, {}, {}}, begin, nullptr);
  for (const cudaStream_t own : exec->streams) put(own, {"a graph", {}, {}, {}}, nullptr, begin);
  for (const Capture::Step& step : exec->capture->steps) {
    const cudaStream_t own = exec->streams[step.stream];
    if (step.make) {
      for (fake_cuda::Work& work : step.make(exec->launches)) {
        put(own, std::move(work), nullptr, nullptr);
      }
    } else if (step.records) {
      put(own, {"record", {}, {}, {}}, marks[step.records.get()] = std::make_shared<Mark>(),
          nullptr);
    } else {
      put(own, {"wait", {}, {}, {}}, nullptr, marks.at(step.waits.get()));
    }
  }
  put(exec->streams.front(), {"a graph's end", {}, {}, {}}, end, nullptr);
  put(stream, {"a graph", {}, {}, {}}, nullptr, end);
  ++exec->launches;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  delete graph;
  --fake_cuda::graphs;
  return static_cast<cudaError_t>(fake_cuda::failure(__func__));
}

/// One that is under way ends first; nobody waits for it.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  Streams::all().close_later(exec->streams, exec->capture);
  delete exec;
  --fake_cuda::graphs;
  return static_cast<cudaError_t>(fake_cuda::failure(__func__));
}

}  // extern "C"
