#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "executor/storage/file_descriptor.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

inline constexpr const char* kLockName = "lock";

/// Keeps other runs out of a folder of checkpoints while a run has it. The folder's file `lock`
/// stays; what counts is the kernel's lock on it (open file description locks, fcntl(2)), which
/// ends with the process, however that ends, and holds between hosts where the file system has it
/// so. Every process of a job takes one: rank 0's byte is 0, that of rank r is r. Rank 0 gets its
/// own only where no process of another job has any, so a job that is being ended still keeps the
/// next one out until its last process is gone.
class FolderLock {
 public:
  /// Locks for rank 0. Writes host and process into the file, for messages to later processes.
  /// \param ending_job  how long to wait for the rest of a job whose rank 0 is gone
  /// \returns what is wrong: another run has the folder, or the file cannot be one
  static Result<FolderLock> take(const std::filesystem::path& folder,
                                 std::chrono::milliseconds ending_job = std::chrono::seconds(10));
  /// Joins the other processes of a job, after its rank 0. \pre rank > 0
  static Result<FolderLock> join(const std::filesystem::path& folder, int rank);

  ~FolderLock();
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) noexcept = default;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Why the file system keeps nobody out; empty where it does.
  const std::string& unlocked() const { return unlocked_; }

 private:
  FolderLock(FileDescriptor file, std::string unlocked, bool first)
      : file_(std::move(file)), unlocked_(std::move(unlocked)), first_(first) {}

  FileDescriptor file_;
  std::string unlocked_;
  bool first_ = false;  // rank 0's
};

/// The process of this host that has the lock of rank 0 on a folder, as it wrote itself; nothing
/// where none has, or it cannot be seen.
std::optional<pid_t> process_that_locks(const std::filesystem::path& folder);

}  // namespace shardwise::exec
