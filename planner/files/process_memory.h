#pragma once

#include <sys/resource.h>

#include <filesystem>
#include <optional>
#include <string>

#include "planner/spec/text/units.h"

namespace shardwise {

/// Memory of its machine that a process may use, and what says so.
struct MemoryRoom {
  Bytes bytes;
  std::string by;  // "the machine has", "ulimit -v allows", "the control group allows"
};

/// The least of: the machine's memory; the limits of this process's control group and of those
/// above it (version 2: memory.max and memory.high; version 1: memory.limit_in_bytes); its address
/// space (RLIMIT_AS, ulimit -v) and its data (RLIMIT_DATA, ulimit -d).
/// \param root  of the file system that has proc and the control groups
/// Source: cgroups(7); proc_pid_mountinfo(5); Linux, Documentation/admin-guide/cgroup-v2.rst,
/// Memory Interface Files, and cgroup-v1/memory.rst; getrlimit(2).
MemoryRoom process_memory(const std::filesystem::path& root = "/");

/// The flag that every program has for what a question may take of the machine's memory, and the
/// most that it takes.
inline constexpr const char* kMemoryLimitFlag = "--memory-limit";
inline constexpr Bytes kMostMemoryLimit = 1024_GiB * 1024;
/// Limit where nobody states one: a quarter of process_memory().
Bytes usual_memory_limit();

/// As long as it lives, the system gives this process `limit` bytes beside what it has, and no
/// more, stacks of threads apart: what would take more throws std::bad_alloc. A limit above what
/// ulimit -d allows changes nothing, nor does any under a sanitizer, which takes memory of its own.
/// One at a time.
class BoundedMemory {
 public:
  /// \param flag  that a user raises it by, for out_of_memory()
  BoundedMemory(Bytes limit, const std::string& flag);
  ~BoundedMemory();
  BoundedMemory(const BoundedMemory&) = delete;
  BoundedMemory& operator=(const BoundedMemory&) = delete;

 private:
  rlimit before_{};
};

/// The limit of the BoundedMemory that lives; nothing where none does.
std::optional<Bytes> memory_bound();

/// Message of a process that got no more memory: which limit it met. That is the BoundedMemory that
/// lives, or that an exception has ended.
std::string out_of_memory();

}  // namespace shardwise
