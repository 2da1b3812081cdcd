#include "tests/support/scratch.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX's

#include <unistd.h>

#include <fstream>
#include <iterator>

namespace shardwise::test {

Scratch::Scratch(const std::filesystem::path& parent) {
  std::string name = (parent / "shardwise-test-XXXXXX").string();
  folder_ = mkdtemp(name.data());
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Scratch::write_bytes(const std::string& name, const std::string& bytes) const {
  std::ofstream(folder_ / name, std::ios::binary) << bytes;
  return path(name);
}

std::filesystem::path memory_folder() {
  const std::filesystem::path shared = "/dev/shm";
  return access(shared.c_str(), W_OK) == 0 ? shared : std::filesystem::temp_directory_path();
}

std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace shardwise::test
