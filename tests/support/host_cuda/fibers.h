#pragma once

#include <cstddef>

#include "tests/support/host_cuda/host_cuda.h"

// A stack of its own for each thread of a block, and the switch between them. Tells the address and
// the thread sanitizer of it where the program has them. Compiled without sanitizers, as is all
// that schedules: what it does must not look like the kernel's accesses.
namespace host_cuda {

/// Where a fiber goes on. The program's own stack is one too.
struct Context {
  void* stack_pointer = nullptr;
  void* thread_sanitizer = nullptr;   // its fiber
  void* address_sanitizer = nullptr;  // its fake stack
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

/// Stack of a thread of kernels.
inline constexpr std::size_t kStackBytes = std::size_t{64} << 10U;
/// A stack with a page behind its end that nobody may touch; kept until the program ends.
Context new_stack(std::size_t bytes = kStackBytes);
/// Makes `fiber` start at `entry`, which never returns, when it is switched to. Under the thread
/// sanitizer it is a new thread, ordered with nothing.
void start(Context& fiber, void (*entry)());
/// After the fiber has left for ever.
void end(Context& fiber);
/// The stack that calls becomes `from`.
void become(Context& from);
/// Goes on with `to`; returns when somebody switches to `from`. \param ends  from is never gone on
/// with
void switch_fiber(Context& from, Context& to, bool ends);
/// To be called first in a fiber's entry.
void entered();

/// Happens-before edges of the thread sanitizer.
void acquire(void* edge);
void release(void* edge);
/// An edge that nobody has used, for one purpose: what is released at one adds up.
void* new_edge();

/// Bytes that the running thread reads or writes where the thread sanitizer does not see it.
void touch(const void* at, std::size_t bytes, bool writes);

/// memcpy and memset that no sanitizer sees.
void copy(void* to, const void* from, std::size_t bytes);
void fill(void* to, unsigned char value, std::size_t bytes);

/// For the address sanitizer: bytes that must not be touched, or may be again.
void forbid(void* at, std::size_t bytes);
void allow(void* at, std::size_t bytes);

}  // namespace host_cuda
