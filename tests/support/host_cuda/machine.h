#pragma once

// The multiprocessor that kernels run on, for what implements CUDA's words.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/host_cuda/fibers.h"
#include "tests/support/host_cuda/host_cuda.h"
#include "tests/support/host_cuda/shared_memory.h"

namespace host_cuda {

inline constexpr int kLanes = 32;
inline constexpr unsigned kMostThreads = 1024;
inline constexpr unsigned kMostWarps = kMostThreads / 32;
inline constexpr std::size_t kMostShared = std::size_t{227} << 10U;  // of a block, from sm_90 on

/// Copies that a thread has begun and not waited for.
struct CopyList {
  std::array<Copy, 128> at{};
  unsigned count = 0;
  unsigned ended = 0;
};

struct Fiber {
  Context context;
  CopyList copies;
  uint3 thread{};
  int number = 0;
  int barriers = 0;
  const char* waits_at = "";
  Fiber* next = nullptr;  // of those that wait with it
};

/// Threads that can go on. Fixed, as nothing that a sanitizer sees, as memory from the heap, may
/// pass from one thread to another here.
struct FiberList {
  std::array<Fiber*, kMostThreads> at{};
  unsigned count = 0;

  void push(Fiber* fiber) { at[count++] = fiber; }
};

/// Threads that wait for the others of their block or warp.
struct Meeting {
  Fiber* waiting = nullptr;
  int arrived = 0;
  unsigned generation = 0;
  unsigned mask = 0;
  const char* what = "";
  // By turns: who is ahead at the next meeting orders nobody who leaves this one.
  std::array<void*, 2> edges{};
};

/// Values that a lane brings to a shuffle and wants from it.
struct Wish {
  std::array<unsigned char, 64> brought{};
  void* place = nullptr;
  std::size_t bytes = 0;
  int source = 0;
};
/// Its threads meet all together, or those of each half, or some of each half.
struct Warp {
  std::array<Meeting, 2> meetings;
  std::array<Wish, kLanes> wishes;
};

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), not of the library: a sanitizer might see that.
class Draws {
 public:
  void seed(std::uint64_t seed) { state_ = seed; }
  unsigned below(unsigned count) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return static_cast<unsigned>(((z ^ (z >> 31U)) >> 32U) * count >> 32U);
  }

 private:
  std::uint64_t state_ = 1;
};

/// The one multiprocessor: a block at a time. Nothing of it grows: what moves memory is watched,
/// and streams that no event orders run on it in turn.
struct Machine {
  Machine() { fibers.reserve(kMostThreads); }
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::array<Warp, kMostWarps> all_warps{};
  std::span<Warp> warps;  // of this block
  FiberList ready;
  std::array<unsigned, kMostWarps> priority{};  // of each warp, in this block
  unsigned candidates = 1;  // drawn from the ready ones; the first by priority runs
  Meeting block;
  SharedMemory shared;
  Draws draws;
  Context caller;
  Fiber* now = nullptr;
  const std::function<void()>* kernel = nullptr;
  const char* name = "";
  void* launch_edge = nullptr;
  void* exit_edge = nullptr;
  int threads = 0;
  int alive = 0;
  int left_out = -1;
  int barriers_met = 0;
  bool taken = false;
};

Machine& machine();

/// Says where a kernel does what CUDA forbids, and aborts.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);

/// Goes on with a thread that can; the caller waits, or has ended.
void pass_on(Context& from, bool ends);

/// The thread that runs. \param what  it is in, for the message outside of a kernel
inline Fiber& running(const Machine& m, const char* what) {
  if (m.now == nullptr) fail("%s outside of a kernel", what);
  return *m.now;
}

/// Waits for `count` threads. Calls `complete` once, in the last of them.
template <class F>
void meet(Meeting& meeting, int count, bool orders, const char* what, F complete) {
  Machine& m = machine();
  Fiber& self = running(m, what);
  void* const edge = orders ? meeting.edges[meeting.generation % 2] : nullptr;
  if (orders) release(edge);
  self.waits_at = what;
  if (++meeting.arrived == count) {
    complete();
    meeting.arrived = 0;
    ++meeting.generation;
    for (Fiber* each = meeting.waiting; each != nullptr; each = each->next) m.ready.push(each);
    m.ready.push(&self);
    meeting.waiting = nullptr;
  } else {
    self.next = std::exchange(meeting.waiting, &self);
  }
  pass_on(self.context, false);
  if (orders) acquire(edge);
}

template <class F>
void meet_warp(unsigned mask, bool orders, const char* what, F complete) {
  const Machine& m = machine();
  const int number = running(m, what).number;
  auto& meetings = m.warps[static_cast<std::size_t>(number / kLanes)].meetings;
  const bool upper = std::countr_zero(mask) >= kLanes / 2;
  Meeting& meeting = meetings[upper ? 1 : 0];
  if ((mask >> static_cast<unsigned>(number % kLanes) & 1U) == 0) {
    fail("%s with mask %08x in a lane that is not of it", what, mask);
  }
  const auto refuse = [&](const Meeting& other) {
    fail("%s with mask %08x where other lanes are in %s with mask %08x", what, mask, other.what,
         other.mask);
  };
  const Meeting& other = meetings[upper ? 0 : 1];
  if (other.arrived > 0 && (other.mask & mask) != 0) refuse(other);
  if (meeting.arrived == 0) {
    meeting.mask = mask;
    meeting.what = what;
  } else if (meeting.mask != mask || std::strcmp(meeting.what, what) != 0) {
    refuse(meeting);
  }
  meet(meeting, std::popcount(mask), orders, what, complete);
}

}  // namespace host_cuda
