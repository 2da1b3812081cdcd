#include "tests/support/host_cuda/fake_cuda.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tests/support/host_cuda/fake_calls.h"
#include "tests/support/host_cuda/fake_graph.h"

namespace fake_cuda {
namespace {

struct Failing {
  std::string call;
  int nth = 0;
  int error = 0;
};

// All behind the mutex of the streams, but what tests read between calls.
std::map<std::string, int> counts;
std::vector<Failing> failing;
bool failed = false;
Machine machine;
std::uint64_t resets = 1;
thread_local std::uint64_t chosen_since = 0;  // NOLINT(*-naming): the reset() it chose a GPU after
thread_local std::uint64_t sees_since = 0;    // NOLINT(*-naming): the reset() it sees one GPU after
thread_local int only_gpu = 0;                // NOLINT(*-naming)

constexpr std::array<std::string_view, 5> kOfNoGpu = {
    "cudaGetDeviceCount", "cudaGetDeviceProperties", "cudaSetDevice", "cudaDriverGetVersion",
    "cudaRuntimeGetVersion"};

/// Complains, once a thread, of a call that makes a context where none was chosen.
void expect_chosen(std::string_view call) {
  if (machine.devices < 2 || chosen_since == resets || !call.starts_with("cuda")) return;
  if (std::ranges::find(kOfNoGpu, call) != kOfNoGpu.end()) return;
  complain(std::string(call) + " from a thread that has chosen none of several GPUs");
  choose();
}

}  // namespace

void choose() { chosen_since = resets; }
void see_only(int gpu) {
  only_gpu = gpu;
  sees_since = resets;
}
int gpus_seen() { return sees_since == resets ? 1 : machine.devices; }
int gpu_seen(int device) { return sees_since == resets ? only_gpu : device; }

cudaError_t issue(cudaStream_t stream, const std::string& call, void* issued, MakeWork make) {
  if (stream == nullptr) {
    complain(call + " in the default stream");
    return cudaErrorInvalidResourceHandle;
  }
  if (stream->capture) {
    capture_work(stream, std::move(make));
    return cudaSuccess;
  }
  for (Work& work : make(0)) {
    Streams::all().put(stream, {std::move(work), nullptr, nullptr, issued});
  }
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t stream, const std::string& call, MakeWork make) {
  const Call current(call.c_str());
  if (current.error() != cudaSuccess) return current.error();
  return issue(stream, call, current.issued(), std::move(make));
}

cudaError_t enqueue(cudaStream_t stream, const std::string& name, std::function<void()> run) {
  return enqueue(stream, name, [name, run = std::move(run)](std::int64_t) {
    return std::vector<Work>{{name, {}, {}, run}};
  });
}

Call::Call(const char* name)
    : issued_(host_cuda::new_edge()), released_(issued_), lock_(Streams::all().mutex) {
  error_ = static_cast<cudaError_t>(failure(name));
  expect_chosen(name);
}

const Machine& the_machine() { return machine; }
bool has_failed() { return failed; }

void reset(std::uint64_t seed, const Machine& with) {
  const Unwatched unwatched;
  const std::unique_lock<std::mutex> lock(Streams::all().mutex);
  Streams::all().reset(seed);
  forget_runtime();
  counts.clear();
  failing.clear();
  failed = false;
  machine = with;
  ++resets;
}

void set_hosts(int hosts) { Streams::all().hosts = hosts; }
std::vector<std::string> complaints() { return Streams::all().complaints; }
void complain(const std::string& line) { Streams::all().complaints.push_back(line); }
std::int64_t worked() { return Streams::all().worked; }
std::map<std::string, int> calls() { return counts; }

void fail(const std::string& call, int nth, cudaError_t error) {
  failing.push_back({call, nth, error});
}

int failure(const std::string& call) {
  ++counts[call];
  const auto found = std::ranges::find(failing, call, &Failing::call);
  if (found == failing.end() || found->nth-- > 0) return 0;
  const int error = found->error;
  failing.erase(found);
  failed = true;
  return error;
}

std::string left_over() {
  std::string text;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count == 0) return;
    text +=
        (text.empty() ? "" : ", ") + std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  add(std::ranges::count(Streams::all().open_streams, false, &CUstream_st::of_graph), "stream");
  add(events_left(), "event");
  add(blocks_left(), "block");
  add(graphs_left(), "graph");
  return text;
}

}  // namespace fake_cuda
