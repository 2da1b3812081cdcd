#pragma once

#include <string>
#include <vector>

#include "planner/files/atomic_file.h"

namespace shardwise {

/// Files that all come to be, or none of them: each is written beside its place (AtomicFile), and
/// takes its name once all are whole. What was there stays as it is when the disk is full, and when
/// a signal (INT, TERM, HUP) or a limit of time (BoundedTime) ends the
/// program meanwhile. Standard output, pipes and devices get
/// their text just before the others take their names. One set exists at a time, in a program that
/// writes files from one thread. All functions throw IoError with the path and the reason.
class AtomicFileSet {
 public:
  AtomicFileSet();
  AtomicFileSet(const AtomicFileSet&) = delete;
  AtomicFileSet& operator=(const AtomicFileSet&) = delete;
  /// Takes away what was not kept.
  ~AtomicFileSet();

  /// A folder for them, and those above it.
  void add_folder(const std::string& path);
  /// A file's whole text. \param path  "-" is standard output
  void add(const std::string& path, const std::string& text);
  /// Gives all of them their names.
  void keep();

  /// Takes away what was not kept. Calls nothing that a signal's handler must not.
  void discard() const noexcept;

 private:
  /// Output to a pipe, a device or standard output.
  struct Streamed {
    std::string path;
    std::string text;
  };
  std::vector<AtomicFile> files_;
  std::vector<Streamed> streams_;
  std::vector<std::string> made_;  // folders, from the top
};

/// Takes away what the set that exists has not kept, for a handler of a signal that ends the
/// program. A thread that changes the set holds SIGINT, SIGTERM, SIGHUP and SIGXCPU meanwhile.
void discard_open_files() noexcept;

/// Opens a pipe or a device for writing. A pipe that nobody reads yet is waited for a moment: a
/// shell starts the reader beside this program.
/// \param path  as the user has it, \param place  where it leads (OutputPlace)
/// \throws IoError  with the path and the reason, such as that no program reads the pipe
int open_stream(const std::string& path, const std::string& place);

/// Writes one file: the whole text or nothing. \throws IoError  with the path and the reason
void write_file(const std::string& path, const std::string& text);

/// Nothing where a file can be written, so that work for one that cannot is not begun; leaves
/// nothing behind. \throws IoError  as write_file() would
void try_file(const std::string& path);

}  // namespace shardwise
