#include "gui/models/compare/metrics_follower.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::view {
namespace {

struct OpenFile {
  int number;
  explicit OpenFile(int opened) : number(opened) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(number); }
};

}  // namespace

MetricsFollower::MetricsFollower(std::string path) : path_(std::move(path)), reader_(path_) {}

Result<bool> MetricsFollower::poll() {
  int error = 0;
  const Result<int> opened = open_regular_file(path_, SymbolicLinks::followed, &error);
  if (error != 0) throw IoError(path_ + ": " + std::strerror(error));
  if (!opened) return opened.problems();
  const OpenFile file(*opened);
  struct stat status = {};
  if (::fstat(file.number, &status) != 0) {
    return Diagnostic{path_, 0, 0, "", std::string("cannot be read: ") + std::strerror(errno), ""};
  }
  const bool shorter = status.st_size < read_;
  if (shorter) {
    read_ = 0;
    reader_ = MetricsReader(path_);
  }
  bool added = shorter;
  std::vector<char> piece(1 << 16);
  while (true) {
    const ssize_t count = ::pread(file.number, piece.data(), piece.size(), read_);
    if (count < 0) {
      return Diagnostic{path_, 0, 0, "", std::string("cannot be read: ") + std::strerror(errno),
                        ""};
    }
    if (count == 0) return added;
    added = true;
    read_ += count;
    Diagnostics problems =
        reader_.add(std::string_view(piece.data(), static_cast<std::size_t>(count)));
    if (!problems.empty()) return problems;
  }
}

}  // namespace shardwise::view
