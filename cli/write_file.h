#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shardwise::cli {

/// Files that all come to be, or none of them: each is written beside its place, and takes its name
/// once all are whole. What was there stays as it is when the disk is full, and when a signal (INT,
/// TERM, HUP) ends the program meanwhile. A device or a pipe is written as it is, at once. One
/// exists at a time.
class FilesTogether {
 public:
  FilesTogether();
  FilesTogether(const FilesTogether&) = delete;
  FilesTogether& operator=(const FilesTogether&) = delete;
  /// Takes away what was not kept.
  ~FilesTogether();

  /// A folder for them, and those above it. \throws IoError  with the path and the reason
  void add_folder(const std::filesystem::path& path);
  /// A file's whole text. \throws IoError  with the path and the reason
  void add(const std::string& path, const std::string& text);
  /// \throws IoError  where a file cannot take its name
  void keep();

  /// Takes away what was not kept. Calls nothing that a signal's handler must not.
  void take_away() const noexcept;

 private:
  /// A file, and where it is written.
  struct Written {
    std::string path;
    std::filesystem::path beside;
  };
  std::vector<Written> written_;
  std::vector<std::filesystem::path> made_;  // folders, from the top
};

/// Writes one file: the whole text or nothing. \throws IoError  with the path and the reason
void write_file(const std::string& path, const std::string& text);

}  // namespace shardwise::cli
