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

#include "tests/support/host_cuda/machine.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace host_cuda {

Machine& machine() {
  static Machine made;
  return made;
}

void fail(const char* format, ...) {
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

namespace {

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

}  // namespace

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

namespace {

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

void* shared(const void* site, std::size_t bytes) { return machine().shared.array(site, bytes); }
void* dynamic_shared() { return machine().shared.dynamic(); }

}  // namespace host_cuda
