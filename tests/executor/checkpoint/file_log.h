#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardwise::exec::test {

constexpr int kRoot = 0;      // the folder that is watched
constexpr int kNothing = -1;  // a name stands for no file

/// Operation of a program on a file or folder. Files have numbers, as names change.
struct FileOperation {
  enum class Kind : std::uint8_t {
    names,     // names of the folder stand for other files from now on, all at once
    write,     // `bytes` from byte `at` on
    truncate,  // to nothing
    keep,      // all of the above on it, by fsync(2)
  };
  Kind kind = Kind::keep;
  int file = kRoot;  // or folder
  std::vector<std::pair<std::string, int>> names;
  std::size_t at = 0;
  std::string bytes;
};

/// Records what this process does to files below a folder, in order, while it exists: this program
/// has its own open, write, pwrite, ftruncate, fsync, rename, renameat2, mkdir, unlinkat and
/// remove, which std::filesystem calls too. Whatever changes files by other ways is missed, so
/// compare what the operations make with what is there.
class FileLog {
 public:
  /// \pre the folder is empty, and no other log exists
  explicit FileLog(const std::filesystem::path& root);
  ~FileLog();
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;

  const std::vector<FileOperation>& operations() const { return operations_; }

  // Called by the functions above, one at a time.
  void opened(const std::filesystem::path& path, int file, bool fresh, bool truncated);
  void cut(int file);  // to nothing
  void wrote(int file, const void* bytes, std::size_t count, std::size_t at);
  void kept(int file);
  void made(const std::filesystem::path& folder);
  /// \pre names of one folder \param exchanged  or else what was at `to` is gone
  void renamed(int was_from, int was_to, const std::filesystem::path& from,
               const std::filesystem::path& to, bool exchanged);
  void removed(int folder, const std::string& name);
  /// The number of what a path or an open file is; kNothing when the log does not know it.
  int number_of(const std::filesystem::path& path) const;
  int number_of(int file) const;

 private:
  void name(const std::filesystem::path& path, ino_t inode);

  std::map<ino_t, int> numbers_;
  int next_ = kRoot;
  std::vector<FileOperation> operations_;
};

}  // namespace shardwise::exec::test
