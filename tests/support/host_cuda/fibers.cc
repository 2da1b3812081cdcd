#include "tests/support/host_cuda/fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Of the sanitizers' runtimes, where the program has one.
// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier)
extern "C" {
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void* edge);
__attribute__((weak)) void __tsan_release(void* edge);
__attribute__((weak)) void __tsan_read_range(void* at, unsigned long bytes);
__attribute__((weak)) void __tsan_write_range(void* at, unsigned long bytes);
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom,
                                                          std::size_t bytes);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom,
                                                           std::size_t* bytes);
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* at, std::size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* at,
                                                         std::size_t bytes);
void __tsan_on_report(void* report);
void host_cuda_switch(void** save, void* to);
}
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)

// Saves what a called function must keep (System V AMD64 ABI, section 3.2.1) and takes the other
// stack's.
__asm__(R"(
.text
.globl host_cuda_switch
.type host_cuda_switch,@function
host_cuda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size host_cuda_switch,.-host_cuda_switch
)");

namespace host_cuda {
namespace {

constexpr std::size_t kKernelBytes = std::size_t{16} << 10U;
constexpr std::size_t kGuardBytes = 4096;
constexpr unsigned kOrdersNothing = 1;  // __tsan_switch_to_fiber_no_sync

void* map(void* at, std::size_t bytes, int flags) {
  void* const made = mmap(at, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (made == MAP_FAILED) {
    std::perror("host_cuda: mmap");
    std::abort();
  }
  return made;
}

thread_local Context* g_left = nullptr;  // NOLINT(*-naming): whom the running fiber took over from

}  // namespace

Context new_stack(std::size_t bytes) {
  auto* const lowest = static_cast<char*>(map(nullptr, bytes + kGuardBytes, 0));
  mprotect(lowest, kGuardBytes, PROT_NONE);
  Context made;
  made.bottom = lowest + kGuardBytes;
  made.bytes = bytes;
  return made;
}

void start(Context& fiber, void (*entry)()) {
  auto* const bottom = static_cast<char*>(const_cast<void*>(fiber.bottom));
  if (races_are_watched()) {
    // The stack was another thread's: mapped again, what that did there is forgotten. Kernels need
    // no more than a part of it; reports do.
    const std::size_t used = fiber.bytes > kStackBytes ? fiber.bytes : kKernelBytes;
    map(bottom + fiber.bytes - used, used, MAP_FIXED);
    fiber.thread_sanitizer = __tsan_create_fiber(0);
  }
  auto* top = reinterpret_cast<std::uintptr_t*>(bottom + fiber.bytes);
  *--top = 0;  // where entry would return to; and the alignment that a call leaves
  *--top = reinterpret_cast<std::uintptr_t>(entry);
  for (int saved = 0; saved < 6; ++saved) *--top = 0;
  fiber.stack_pointer = top;
}

void end(Context& fiber) {
  if (races_are_watched()) __tsan_destroy_fiber(fiber.thread_sanitizer);
}

void become(Context& from) {
  if (races_are_watched()) from.thread_sanitizer = __tsan_get_current_fiber();
}

void switch_fiber(Context& from, Context& to, bool ends) {
  if (races_are_watched()) __tsan_switch_to_fiber(to.thread_sanitizer, kOrdersNothing);
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(ends ? nullptr : &from.address_sanitizer, to.bottom, to.bytes);
  }
  g_left = &from;
  host_cuda_switch(&from.stack_pointer, to.stack_pointer);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    // Only the program's own stack has to be learnt; a fiber's is known.
    Context& left = *g_left;
    __sanitizer_finish_switch_fiber(from.address_sanitizer, &left.bottom, &left.bytes);
  }
}

void entered() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, &g_left->bottom, &g_left->bytes);
  }
}

namespace {
bool g_exits_at_race = false;  // NOLINT(*-naming)
}
void exit_at_race() { g_exits_at_race = true; }
bool races_are_watched() { return __tsan_create_fiber != nullptr; }
void acquire(void* edge) {
  if (races_are_watched()) __tsan_acquire(edge);
}
void release(void* edge) {
  if (races_are_watched()) __tsan_release(edge);
}
void* new_edge() {
  constexpr std::size_t kBytes = std::size_t{1} << 32U;
  static char* next = static_cast<char*>(map(nullptr, kBytes, 0));
  return races_are_watched() ? next += 16 : next;
}

void touch(const void* at, std::size_t bytes, bool writes) {
  if (!races_are_watched() || bytes == 0) return;
  (writes ? __tsan_write_range : __tsan_read_range)(const_cast<void*>(at), bytes);
}

// Through volatile: a compiler would make it a call of memcpy, which sanitizers watch.
void copy(void* to, const void* from, std::size_t bytes) {
  auto* const out = static_cast<volatile unsigned char*>(to);
  const auto* const in = static_cast<const volatile unsigned char*>(from);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = in[i];
}
void fill(void* to, unsigned char value, std::size_t bytes) {
  auto* const out = static_cast<volatile unsigned char*>(to);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = value;
}

void forbid(void* at, std::size_t bytes) {
  if (__asan_poison_memory_region != nullptr) __asan_poison_memory_region(at, bytes);
}
void allow(void* at, std::size_t bytes) {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(at, bytes);
}

}  // namespace host_cuda

// Called by the thread sanitizer when it has printed a report.
void __tsan_on_report(void* /*report*/) {  // NOLINT(*-naming, *-reserved-identifier)
  if (host_cuda::g_exits_at_race) _exit(host_cuda::kRaceStatus);
}
