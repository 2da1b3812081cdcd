#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "planner/spec/json/regular_file.h"

namespace shardwise {

/// System calls of files. Tests have one of them fail.
struct FileCalls {
  ssize_t (*write)(int file, const void* bytes, std::size_t count);
  int (*fsync)(int file);
  int (*close)(int file);
  int (*rename)(const char* from, const char* to);
  int (*flock)(int file, int operation);
};
FileCalls& file_calls();

/// A regular file that appears whole and lasts, or not at all. It is written under a name of its
/// own beside its place, which no other process has: NAME.RANDOM.part. What was at its place stays
/// there until then; the new file has its mode, and its owner where the system lets it. A link
/// stays a link, and the file it leads to is written, unless links are refused.
///
/// A writer that is killed leaves NAME.RANDOM.part behind. The next one of NAME takes it away: the
/// user's own file that no process holds locked, as a writer does until it is published (flock(2)).
/// A writer to whom the system gives no locks (ENOLCK: NFS without its daemon) writes under
/// NAME.RANDOM.part.unlocked, which no other writer takes away.
///
/// All functions throw IoError with the path and the reason. A write, synchronisation or closing
/// that failed is not tried again: after it, nobody knows what the disk has.
class AtomicFile {
 public:
  /// \param path   of no device, pipe or folder (OutputPlace)
  /// \param links  refused in a folder that is the program's own: what a link there leads to is
  ///               somebody else's
  explicit AtomicFile(const std::string& path, SymbolicLinks links = SymbolicLinks::followed);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Leaves nothing behind unless publish() has returned.
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Has the disk keep all of it, and closes it.
  void finish();
  /// Gives it its name. \pre finish()
  void publish();
  /// Where it is, for sync_folder after publish().
  std::string folder() const;

  /// Takes away what was not published. Calls nothing that a signal's handler must not.
  void discard() const noexcept;

  /// Name until it is published.
  const std::string& temporary() const { return temporary_; }

 private:
  [[noreturn]] void fail(int error) const;
  void create(mode_t mode);
  void take_over_owner();

  std::string path_;       // as the user has it
  std::string place_;      // where that leads
  std::string temporary_;  // empty once it is published
  int file_ = -1;
  int lock_ = -1;  // the same open file, which is locked while it is open
};

/// Writes all bytes to an open file. \returns 0, or the error that stopped it
int write_bytes(int file, std::span<const std::byte> bytes);

/// Has the disk keep the names in a folder. \throws IoError
void sync_folder(const std::string& folder);

}  // namespace shardwise
