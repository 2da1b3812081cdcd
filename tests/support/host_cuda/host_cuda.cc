#include "tests/support/host_cuda/host_cuda.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/host_cuda/fibers.h"
#include "tests/support/host_cuda/shared_memory.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace host_cuda {
namespace {

constexpr int kLanes = 32;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostWarps = kMostThreads / 32;
constexpr std::size_t kMostShared = std::size_t{227} << 10U;  // of a block, from sm_90 on

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

/// What a lane brings to a shuffle and wants from it.
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

Machine& machine() {
  static Machine made;
  return made;
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
  const Machine& m = machine();
  std::fprintf(stderr, "host_cuda: %s, block %u,%u,%u", m.name, blockIdx.x, blockIdx.y, blockIdx.z);
  if (m.now != nullptr) std::fprintf(stderr, ", thread %d", m.now->number);
  std::fputs(": ", stderr);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

Fiber* take_ready(Machine& m) {
  unsigned best = m.draws.below(m.ready.count);
  for (unsigned c = 1; c < m.candidates; ++c) {
    const unsigned other = m.draws.below(m.ready.count);
    const auto rank = [&](unsigned i) {
      return m.priority[static_cast<std::size_t>(m.ready.at[i]->number / kLanes)];
    };
    if (rank(other) < rank(best)) best = other;
  }
  Fiber* const taken = m.ready.at[best];
  m.ready.at[best] = m.ready.at[--m.ready.count];
  return taken;
}

/// Goes on with a thread that can; the caller waits, or has ended.
void pass_on(Context& from, bool ends) {
  Machine& m = machine();
  if (m.ready.count == 0) {
    if (m.alive == 0) return switch_fiber(from, m.caller, ends);
    m.now = m.block.waiting;
    for (const Warp& w : m.warps) {
      for (const Meeting& each : w.meetings) {
        if (each.waiting != nullptr) m.now = each.waiting;
      }
    }
    fail("deadlock in %s: %d of %d threads have ended, %d wait in __syncthreads", m.now->waits_at,
         m.threads - m.alive, m.threads, m.block.arrived);
  }
  Fiber* const next = take_ready(m);
  m.now = next;
  threadIdx = next->thread;
  if (&next->context != &from) switch_fiber(from, next->context, ends);
}

/// The thread that runs. \param what  it is in, for the message outside of a kernel
Fiber& running(const Machine& m, const char* what) {
  if (m.now == nullptr) fail("%s outside of a kernel", what);
  return *m.now;
}

void run_thread() {
  entered();
  Machine& m = machine();
  acquire(m.launch_edge);
  if (m.kernel == nullptr) std::abort();
  (*m.kernel)();
  release(m.exit_edge);
  Fiber& ended = running(m, "the end of a thread");
  if (ended.copies.count > 0) fail("ends with %u copies not waited for", ended.copies.count);
  m.barriers_met = std::max(m.barriers_met, ended.barriers);
  --m.alive;
  pass_on(ended.context, true);
  std::abort();
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

/// Whether the barrier that the running thread has come to is left out.
bool is_left_out() {
  const Machine& m = machine();
  return running(m, "a barrier").barriers++ == m.left_out;
}

void renew(Meeting& meeting) {
  meeting.arrived = 0;
  meeting.generation = 0;
  meeting.waiting = nullptr;
  for (void*& edge : meeting.edges) edge = new_edge();
}

void run_block(Machine& m, std::size_t shared_bytes) {
  m.alive = m.threads;
  renew(m.block);
  m.warps =
      std::span(m.all_warps).first(static_cast<std::size_t>((m.threads + kLanes - 1) / kLanes));
  for (std::size_t w = 0; w < m.warps.size(); ++w) {
    for (Meeting& each : m.warps[w].meetings) renew(each);
    m.priority[w] = m.draws.below(1U << 16U);
  }
  m.candidates = 1U << (2 * m.draws.below(3));  // 1: any thread; 16: some warps run far ahead
  m.shared.begin_block(shared_bytes);
  m.ready.count = 0;
  for (int i = 0; i < m.threads; ++i) {
    Fiber& fiber = *m.fibers[static_cast<std::size_t>(i)];
    fiber.barriers = 0;
    start(fiber.context, &run_thread);
    m.ready.push(&fiber);
  }
  pass_on(m.caller, false);
  m.now = nullptr;
  for (int i = 0; i < m.threads; ++i) end(m.fibers[static_cast<std::size_t>(i)]->context);
  m.shared.end_block();
}

/// Grids of several host threads come one after the other, by a lock that orders nothing else.
class Turn {
 public:
  Turn() {
    while (__atomic_test_and_set(&machine().taken, __ATOMIC_ACQUIRE)) sched_yield();
  }
  ~Turn() { __atomic_clear(&machine().taken, __ATOMIC_RELEASE); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
};

Enqueue& other_enqueue() {
  static Enqueue made;
  return made;
}

}  // namespace

void set_seed(std::uint64_t seed) { machine().draws.seed(seed); }

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread,
              const char* name) {
  const Turn turn;
  Machine& m = machine();
  const unsigned threads = block.x * block.y * block.z;
  const unsigned blocks = grid.x * grid.y * grid.z;
  m.name = name;
  if (threads == 0 || threads > kMostThreads || shared_bytes > kMostShared || blocks == 0 ||
      grid.y > 65535 || grid.z > 65535) {
    fail("%u blocks of %u threads with %zu bytes of shared memory", blocks, threads, shared_bytes);
  }
  while (m.fibers.size() < threads) {
    auto fiber = std::make_unique<Fiber>();
    fiber->context = new_stack();
    fiber->number = static_cast<int>(m.fibers.size());
    m.fibers.push_back(std::move(fiber));
  }
  for (unsigned i = 0; i < threads; ++i) {
    m.fibers[i]->thread = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  }
  m.threads = static_cast<int>(threads);
  m.kernel = &thread;
  m.launch_edge = new_edge();
  m.exit_edge = new_edge();
  gridDim = grid;
  blockDim = block;
  become(m.caller);
  release(m.launch_edge);
  std::vector<unsigned> order(blocks);
  for (unsigned b = 0; b < blocks; ++b) {
    order[b] = b;
    std::swap(order[b], order[m.draws.below(b + 1)]);
  }
  for (const unsigned b : order) {
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    run_block(m, shared_bytes);
  }
  acquire(m.exit_edge);
}

void set_enqueue(Enqueue enqueue) { other_enqueue() = std::move(enqueue); }

const char* enqueue(cudaStream_t stream, const char* name, dim3 grid, dim3 block,
                    std::size_t shared_bytes, std::function<void()> thread) {
  if (const Enqueue& other = other_enqueue()) {
    return other(stream, name, grid, block, shared_bytes, std::move(thread));
  }
  run_grid(grid, block, shared_bytes, thread, name);
  return nullptr;
}

void leave_out_barrier(int index) { machine().left_out = index; }
int barriers_met() { return std::exchange(machine().barriers_met, 0); }

void sync_threads() {
  Machine& m = machine();
  if (!is_left_out()) meet(m.block, m.threads, true, "__syncthreads", [] {});
}

void sync_warp(unsigned mask) {
  if (!is_left_out()) meet_warp(mask, true, "__syncwarp", [] {});
}

void exchange(unsigned mask, const void* mine, void* theirs, std::size_t bytes, int source,
              const char* what) {
  const Machine& m = machine();
  const int number = running(m, what).number;
  Warp& warp = m.warps[static_cast<std::size_t>(number / kLanes)];
  if (source < 0 || source >= kLanes || (mask >> static_cast<unsigned>(source) & 1U) == 0) {
    fail("%s reads lane %d, which is not in mask %08x", what, source, mask);
  }
  Wish& wish = warp.wishes[static_cast<std::size_t>(number % kLanes)];
  copy(wish.brought.data(), mine, bytes);
  wish.place = theirs;
  wish.bytes = bytes;
  wish.source = source;
  meet_warp(mask, false, what, [&warp, mask] {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1U) == 0) continue;
      const Wish& each = warp.wishes[lane];
      const Wish& from = warp.wishes[static_cast<std::size_t>(each.source)];
      copy(each.place, from.brought.data(), each.bytes);
    }
  });
}

namespace {

/// The warp of the running thread, to which each of its lanes brings `bytes`; the last one that
/// comes calls complete(warp).
template <class F>
void bring(const void* mine, std::size_t bytes, void* place, const char* what, F complete) {
  const Machine& m = machine();
  const int number = running(m, what).number;
  Warp& warp = m.warps[static_cast<std::size_t>(number / kLanes)];
  Wish& wish = warp.wishes[static_cast<std::size_t>(number % kLanes)];
  copy(wish.brought.data(), mine, bytes);
  wish.place = place;
  meet_warp(~0U, false, what, [&warp, complete] { complete(warp); });
}

struct MmaOperands {
  std::array<unsigned, 4> a;
  std::array<unsigned, 2> b;
  std::array<float, 4> c;
};
float bf16(unsigned pair, unsigned which) {
  return std::bit_cast<float>(which == 0 ? pair << 16U : pair & 0xffff0000U);
}

void multiply_warp(const Warp& warp) {
  std::array<std::array<double, 16>, 16> a;
  std::array<std::array<double, 8>, 16> b;
  std::array<MmaOperands, kLanes> operands;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    MmaOperands& own = operands[lane];
    copy(&own, warp.wishes[lane].brought.data(), sizeof(own));
    const unsigned group = lane / 4;
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned k = 2 * (lane % 4) + i % 2 + i / 4 * 8;
      a[group + i / 2 % 2 * 8][k] = static_cast<double>(bf16(own.a[i / 2], i % 2));
    }
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned k = 2 * (lane % 4) + i % 2 + i / 2 * 8;
      b[k][group] = static_cast<double>(bf16(own.b[i / 2], i % 2));
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::array<float, 4> c = operands[lane].c;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + i / 2 * 8;
      const unsigned column = 2 * (lane % 4) + i % 2;
      auto sum = static_cast<double>(c[i]);
      for (unsigned k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      c[i] = static_cast<float>(sum);
    }
    copy(warp.wishes[lane].place, c.data(), sizeof(c));
  }
}

}  // namespace

void multiply(const unsigned* a, const unsigned* b, float* c) {
  MmaOperands mine;
  copy(mine.a.data(), a, sizeof(mine.a));
  copy(mine.b.data(), b, sizeof(mine.b));
  copy(mine.c.data(), c, sizeof(mine.c));
  bring(&mine, sizeof(mine), c, "mma.sync", &multiply_warp);
}

void distribute_matrices(const void* row, bool transposed, unsigned* made) {
  bring(row, 16, made, "ldmatrix", [transposed](const Warp& warp) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::array<std::array<std::uint16_t, 2>, 4> got;
      for (std::size_t n = 0; n < 8; ++n) {
        const std::size_t group = lane / 4;
        const std::size_t side = 2 * (lane % 4) + n % 2;
        const Wish& from = warp.wishes[8 * (n / 2) + (transposed ? side : group)];
        copy(&got[n / 2][n % 2], &from.brought[2 * (transposed ? group : side)], 2);
      }
      copy(warp.wishes[lane].place, got.data(), sizeof(got));
    }
  });
}

void begin_copy(const Copy& begun) {
  CopyList& list = running(machine(), "cp.async").copies;
  const auto both =
      std::bit_cast<std::uintptr_t>(begun.to) | std::bit_cast<std::uintptr_t>(begun.from);
  if (both % begun.bytes != 0) fail("cp.async of %zu bytes at another address", begun.bytes);
  if (list.count == list.at.size()) fail("more copies than cp.async is tried with");
  list.at[list.count++] = begun;
}

bool end_copy(Copy& ended) {
  CopyList& list = running(machine(), "cp.async.wait").copies;
  if (list.ended == list.count) {
    list.count = list.ended = 0;
    return false;
  }
  ended = list.at[list.ended++];
  return true;
}

void* shared(const void* site, std::size_t bytes) { return machine().shared.array(site, bytes); }
void* dynamic_shared() { return machine().shared.dynamic(); }

}  // namespace host_cuda
