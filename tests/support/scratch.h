#pragma once

#include <filesystem>
#include <string>

namespace shardwise::test {

/// Folder of one test, removed with it.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a file of these bytes. \returns its path
  std::string write_bytes(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path folder_;
};

/// A folder of a file system in memory where there is one, for tests that have it synchronised
/// often.
std::filesystem::path memory_folder();

/// The bytes of a file.
std::string bytes_of_file(const std::filesystem::path& path);

}  // namespace shardwise::test
