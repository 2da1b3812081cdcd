#include "executor/calibrate/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <span>
#include <vector>

#include "planner/spec/text/error.h"

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

int cores_of_all(World& world) {
  struct Place {
    std::array<char, 64> host{};
    cpu_set_t may_run{};
  };
  Place own;
  gethostname(own.host.data(), own.host.size() - 1);
  sched_getaffinity(0, sizeof(own.may_run), &own.may_run);
  std::vector<Place> all(static_cast<std::size_t>(world.size()));
  world.control_group(all_ranks(world), Control::machine)
      ->all_gather_bytes(std::as_bytes(std::span<const Place>(&own, 1)),
                         std::as_writable_bytes(std::span<Place>(all)));
  cpu_set_t any{};
  for (const Place& each : all) {
    if (each.host != own.host) {
      throw IoError(fmt::format("ranks on {} and {}: start them on the machine that is measured",
                                own.host.data(), each.host.data()));
    }
    CPU_OR(&any, &any, &each.may_run);
  }
  return std::max(1, CPU_COUNT(&any));
}

Bytes resident_memory() {
  // Pages: of the program in all, resident, of those of files or shared … Source: Linux,
  // Documentation/filesystems/proc.rst, statm.
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  std::int64_t shared = 0;
  file >> all >> resident >> shared;
  return Bytes((resident - shared) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace shardwise::exec
