#pragma once

// A fake of CUDA's runtime under its own prototypes (cuda_runtime_api.h), for programs that link to
// it in the runtime's place. What is issued to a stream waits there; while the host waits or asks,
// heads of streams run one at a time, in any order that streams and events allow, drawn from a
// seed. Under the thread sanitizer each stream is a thread that only what CUDA orders orders: issue
// before its work, a stream's work, record before wait, work before the host that waited for it.
// Device memory is poisoned and counted; copies must stay within it. Captures refuse what CUDA
// refuses. What can never go on is named, and the call that waits for it fails with
// cudaErrorLaunchTimeout. On a machine of several GPUs, calls of a thread that chose none are
// named, as they would take the first one's memory for a context. Not seen: time, weak memory, what
// a driver does.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fake_cuda {

/// Work that a stream runs when its turn comes.
struct Work {
  std::string name;             // in messages
  std::function<bool()> ready;  // whether it can begin; none: at once
  std::string waits_for;        // while it is not ready, in messages: "other ranks"
  std::function<void()> run;    // seen by the sanitizers as the stream's; may be none
};
/// Makes the work, one after the other, of one issue. \param issue  0 at the call that issued it
/// uncaptured; of a graph the number of its launch, from 0
using MakeWork = std::function<std::vector<Work>(std::int64_t issue)>;

/// Issues work to a stream. `make` is called when it is issued: now, or, while the stream is
/// captured, at each launch of the graph. `call` is a CUDA or library call, for messages.
cudaError_t enqueue(cudaStream_t stream, const std::string& call, MakeWork make);
cudaError_t enqueue(cudaStream_t stream, const std::string& name, std::function<void()> run);

/// The machine that calls tell of.
struct Machine {
  std::string name = "fake";
  int devices = 1;
  int major = 9;
  int minor = 0;
  int driver_version = 13000;
  int runtime_version = 13000;
  std::int64_t total_bytes = std::int64_t{1} << 30;  // what is allocated counts against it
};

/// Begins a test: all streams, events, memory and graphs are gone (left_over() says whether they
/// were), counts and complaints are forgotten, and orders are drawn from `seed`.
void reset(std::uint64_t seed, const Machine& machine = {});
/// How many threads of the host issue work. Work can never go on when all of them wait: 1 at first.
void set_hosts(int hosts);
/// Calls that CUDA's documentation forbids, or that could never go on, one line each.
std::vector<std::string> complaints();
/// Has the calling thread stand for a process that sees this GPU of the machine alone, as by
/// CUDA_VISIBLE_DEVICES, until reset().
void see_only(int gpu);
/// Adds a line to them: for fakes of other libraries.
void complain(const std::string& line);
/// Objects that were made and not given back, "2 streams, 1 event"; empty for none.
std::string left_over();

/// How often each call was made since reset().
std::map<std::string, int> calls();
/// Has a call fail once: the `nth` from now on, from 0, does nothing and returns `error`.
void fail(const std::string& call, int nth, cudaError_t error);
/// The error that `call` shall return now, cudaSuccess for none; counts it. For fakes of other
/// libraries, whose own codes fit into an int.
int failure(const std::string& call);

/// Counts the calling thread's waits of streams for events, of which the `nth` from now on does
/// nothing: a defect that tests must find. -1: none. \returns how many since the last call
int forget_wait(int nth);

/// Pieces of work that streams have run.
std::int64_t worked();
/// Whether [at, at + bytes) lies in one allocation of the device's or of pinned memory.
bool is_device(const void* at, std::size_t bytes);
bool is_pinned(const void* at, std::size_t bytes);
/// Whether it lies in one allocation that other GPUs may map: ncclMemAlloc's.
bool is_mappable(const void* at, std::size_t bytes);

}  // namespace fake_cuda
