#include "executor/launch/process_limits.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

namespace shardwise::exec {
namespace {

constexpr rlim_t kStack = rlim_t{8} << 20;
constexpr rlim_t kNeededStack = rlim_t{1} << 20;

/// Raises a soft limit to `wanted`, or to the hard one.
void raise(int resource, rlim_t wanted) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  const rlim_t most = std::min(wanted, limit.rlim_max);
  if (limit.rlim_cur >= most) return;  // RLIM_INFINITY is the largest number
  limit.rlim_cur = most;
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

/// glibc gives threads the stack that the limit allowed when the program started.
void raise_thread_stack() {
  pthread_attr_t usual;
  if (::pthread_getattr_default_np(&usual) != 0) return;
  std::size_t bytes = 0;
  const bool small = ::pthread_attr_getstacksize(&usual, &bytes) == 0 && bytes < kNeededStack;
  if (small && ::pthread_attr_setstacksize(&usual, kStack) == 0) {
    ::pthread_setattr_default_np(&usual);
  }
  ::pthread_attr_destroy(&usual);
}

}  // namespace

void raise_limits() {
  raise(RLIMIT_NOFILE, RLIM_INFINITY);
  raise(RLIMIT_STACK, kStack);
  raise_thread_stack();
}

std::string narrow_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kNeededStack) return "";
  return fmt::format("the stack is limited to {} KiB, and {} are needed (see ulimit -s)",
                     limit.rlim_cur >> 10, kNeededStack >> 10);
}

}  // namespace shardwise::exec
