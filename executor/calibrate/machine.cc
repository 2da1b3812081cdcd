#include "executor/calibrate/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>

namespace shardwise::exec {
namespace {

/// The value of the first line "name : value" of /proc/cpuinfo.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::int64_t memory_bytes() {
  const auto pages = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES));
  const auto whole = pages * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  // A container may have less. Source: Linux, Documentation/admin-guide/cgroup-v2.rst, memory.max.
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  std::int64_t most = 0;
  return limit >> most && most > 0 ? std::min(whole, most) : whole;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  machine.host = host.data();
  machine.processor = processor_name();
  cpu_set_t may_run{};
  if (sched_getaffinity(0, sizeof(may_run), &may_run) == 0) {
    machine.cores = std::max(1, CPU_COUNT(&may_run));
  }
  machine.memory = Bytes(memory_bytes());
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 16> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d", &utc);
  machine.date = date.data();
  std::array<double, 1> load{};
  if (getloadavg(load.data(), 1) == 1) machine.load = load.front();
  return machine;
}

Bytes resident_memory() {
  // Pages: of the program in all, resident … Source: Linux, Documentation/filesystems/proc.rst.
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return Bytes(resident * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace shardwise::exec
