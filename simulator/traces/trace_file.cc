#include "simulator/traces/trace_file.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::sim {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kBuffer = 1 << 18;
/// Of what an archive unpacks to. A profiler's traces shrink to a twentieth; gzip makes a
/// thousandth of what repeats itself.
constexpr std::int64_t kMostUnpacked = 100;        // times the bytes of the archive
constexpr std::int64_t kAlwaysUnpacked = 1 << 26;  // bytes

struct Closer {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using Archive = std::unique_ptr<gzFile_s, Closer>;

[[noreturn]] void fail(const std::string& path, int error) {
  throw IoError(fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
}

/// zlib reads files that are no archives as they are.
Result<Archive> open(const std::string& path) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    return Diagnostic{path, 0, 0, "", "a folder, not a file", "give one trace in it"};
  }
  int error = 0;
  const Result<int> opened = open_regular_file(path, SymbolicLinks::followed, &error);
  if (error != 0) fail(path, error);
  if (!opened) return opened.problems();
  Archive file(gzdopen(*opened, "rb"));
  if (!file) {
    ::close(*opened);
    fail(path, ENOMEM);
  }
  gzbuffer(file.get(), kBuffer);
  return file;
}

/// What is wrong with the archive; empty when nothing is.
std::string damage(gzFile_s* file) {
  int error = Z_OK;
  const char* text = gzerror(file, &error);
  if (error == Z_OK || error == Z_STREAM_END) return "";
  if (error == Z_ERRNO) return std::strerror(errno);
  return error == Z_BUF_ERROR ? "it ends too early" : text;
}

/// Whether an archive unpacks to more than so many bytes. They are counted before any is parsed,
/// in a twentieth of the time: the size that an archive states of itself may be false. The file is
/// then at its begin, as if nothing had been read.
/// \param goes_on  asked for each piece; false stops
bool unpacks_to_more(gzFile_s* file, std::int64_t most, const std::function<bool()>& goes_on) {
  if (gzdirect(file) != 0) return false;
  std::vector<char> piece(kBuffer);
  std::int64_t unpacked = 0;
  while (unpacked <= most && goes_on()) {
    const int count = gzread(file, piece.data(), static_cast<unsigned>(piece.size()));
    if (count <= 0) break;
    unpacked += count;
  }
  gzclearerr(file);  // damage is said where the events before it are known
  gzrewind(file);
  return unpacked > most;
}

/// Reads the file by `reader`, which takes a ByteSource.
template <class Reader>
auto read_packed(const std::string& path, const SayRead& say, const Reader& reader)
    -> decltype(reader(ByteSource())) {
  Result<Archive> opened = open(path);
  if (!opened) return opened.problems();
  gzFile_s* const file = opened->get();
  std::error_code unknown;
  const std::uintmax_t bytes = fs::file_size(path, unknown);
  const std::int64_t size = unknown ? 0 : static_cast<std::int64_t>(bytes);
  int failed = 0;
  bool stopped = false;
  std::int64_t unpacked = 0;
  const std::int64_t most = std::max(kAlwaysUnpacked, kMostUnpacked * size);
  const auto too_much = [&] {
    return Diagnostic{
        path,
        0,
        0,
        "",
        fmt::format("a gzip archive of {} bytes that unpacks to more than {}", size, most),
        "where that is no mistake, give the unpacked trace: it has no such limit"};
  };
  const bool more = unpacks_to_more(file, most, [&] {
    stopped = stopped || (say && !say(0, size));
    return !stopped;
  });
  if (stopped) return Diagnostic{path, 0, 0, "", "reading was stopped", ""};
  if (more) return too_much();
  const ByteSource source = [&](char* into, std::size_t room) -> std::size_t {
    const int count = gzread(file, into, static_cast<unsigned>(room));
    if (count < 0) {
      failed = count;
      return 0;
    }
    stopped = stopped || (say && !say(gzoffset(file), size));
    unpacked += count;
    if (unpacked > most && gzdirect(file) == 0) return 0;
    return stopped ? 0 : static_cast<std::size_t>(count);
  };
  auto read = reader(source);
  if (stopped) return Diagnostic{path, 0, 0, "", "reading was stopped", ""};
  if (unpacked > most && gzdirect(file) == 0) return too_much();  // it was written meanwhile
  const std::string damaged = damage(file);
  if (failed == 0 && (read.ok() || damaged.empty())) return read;
  const bool world = gzdirect(file) != 0;
  if (world) fail(path, errno != 0 ? errno : EIO);
  return Diagnostic{path,
                    0,
                    0,
                    "",
                    fmt::format("a damaged gzip archive: {}", damaged),
                    "was it written to its end?"};
}

}  // namespace

Result<TracedRun> read_trace_file(const std::string& path, const TraceListener& listener) {
  const SayRead say = [&](std::int64_t read, std::int64_t size) {
    return !listener.stop.stop_requested() && (!listener.say || listener.say(read, size));
  };
  return read_packed(path, say, [&](const ByteSource& source) {
    return read_trace(source, path, listener.spans);
  });
}

Result<TraceHead> read_trace_file_events(const std::string& path,
                                         const std::function<bool(const TraceEvent&)>& each,
                                         const SayRead& say) {
  return read_packed(
      path, say, [&](const ByteSource& source) { return read_trace_events(source, path, each); });
}

bool is_trace(const std::string& path) {
  std::array<char, 4096> begin{};
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  const std::string_view text(begin.data(), static_cast<std::size_t>(file.gcount()));
  if (text.starts_with("\x1f\x8b")) return true;
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first != std::string_view::npos && text[first] == '[') return true;
  if (text.find("\"shardwise.report/") != std::string_view::npos) return false;
  const std::array<std::string_view, 5> keys = {"\"traceEvents\"", "\"schemaVersion\"",
                                                "\"deviceProperties\"", "\"distributedInfo\"",
                                                "\"shardwise.trace/"};
  return std::any_of(keys.begin(), keys.end(), [text](std::string_view key) {
    return text.find(key) != std::string_view::npos;
  });
}

}  // namespace shardwise::sim
