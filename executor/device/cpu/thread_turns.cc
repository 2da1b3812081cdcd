#include "executor/device/cpu/thread_turns.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace shardwise::exec {
namespace {

/// As sched_setattr() takes it. Source: Linux, include/uapi/linux/sched/types.h.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // nanoseconds; of SCHED_OTHER a turn
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

}  // namespace

void take_short_turns() {
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // whoever started the run chose otherwise
  SchedulingAttributes asked;
  asked.nice = getpriority(PRIO_PROCESS, 0);
  asked.runtime = 100'000;
  syscall(SYS_sched_setattr, 0, &asked, 0U);
}

}  // namespace shardwise::exec
