#include "planner/files/process_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <exception>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kUnderSanitizer = true;
#elif defined(__has_feature)
constexpr bool kUnderSanitizer =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kUnderSanitizer = false;
#endif

// Of the process, as the system's limit is.
std::optional<Bytes> bound;  // NOLINT(*non-const-global*)
std::string bound_text;      // NOLINT(*non-const-global*)

/// Where control groups of one kind are, and this process among them.
struct Hierarchy {
  fs::path mount;  // of their file system
  fs::path own;    // below it
};

/// The words of a line, by spaces.
std::vector<std::string> words_in(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

bool names(std::string_view list, std::string_view word) {
  const std::string all = fmt::format(",{},", list);
  return all.find(fmt::format(",{},", word)) != std::string::npos;
}

/// The path of this process in a hierarchy: the line "0::/path" of version 2, "4:memory:/path" of
/// version 1.
std::optional<std::string> group_path(const fs::path& root, bool second) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t next = line.find(':', first + 1);
    if (first == std::string::npos || next == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, next - first - 1);
    if (second ? line.starts_with("0::") : names(controllers, "memory")) {
      return line.substr(next + 1);
    }
  }
  return std::nullopt;
}

std::optional<Hierarchy> hierarchy_of(const fs::path& root, bool second) {
  const std::optional<std::string> path = group_path(root, second);
  if (!path) return std::nullopt;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // "36 35 0:33 /root /mount options shared:1 - type source options".
    const std::vector<std::string> words = words_in(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool is_it =
        second ? *(dash + 1) == "cgroup2" : *(dash + 1) == "cgroup" && names(*(dash + 3), "memory");
    if (!is_it) continue;
    // What is mounted may be a part of the hierarchy that begins at this process or above it.
    const std::string& mounted = words[3];
    const bool below = mounted != "/" && path->starts_with(mounted);
    const std::string own = below ? path->substr(mounted.size()) : *path;
    return Hierarchy{root / fs::path(words[4]).relative_path(),
                     fs::path(own).relative_path().lexically_normal()};
  }
  return std::nullopt;
}

/// The number in a file; the largest where there is none, as in "max".
std::int64_t number_in(const fs::path& path) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::ifstream file(path);
  std::string text;
  std::int64_t number = kNone;
  if (!(file >> text)) return kNone;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && number >= 0 ? number : kNone;
}

/// The least limit of a group and those above it.
std::int64_t group_limit(const Hierarchy& groups, bool second) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  fs::path group = groups.own;
  for (;;) {
    const fs::path folder = groups.mount / group;
    if (second) {
      least =
          std::min({least, number_in(folder / "memory.max"), number_in(folder / "memory.high")});
    } else {
      least = std::min(least, number_in(folder / "memory.limit_in_bytes"));
    }
    if (group.empty() || group == ".") return least;
    group = group.parent_path();
  }
}

void keep_least(MemoryRoom& room, std::int64_t bytes, const char* by) {
  if (bytes < room.bytes.value()) room = {Bytes(bytes), by};
}

/// What setrlimit has; nothing where it is unlimited.
std::optional<std::int64_t> soft_limit(__rlimit_resource which) {
  struct rlimit limit {};
  if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  constexpr rlim_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, kMost));
}

/// Data of this process now, bytes. Source: proc_pid_statm(5).
std::int64_t data_in_use() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  for (int field = 0; field < 6; ++field) file >> pages;
  return file ? pages * ::sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

MemoryRoom process_memory(const fs::path& root) {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  constexpr std::int64_t kUnknown = std::int64_t{1} << 50;
  MemoryRoom room = {Bytes(pages > 0 && page > 0 ? pages * page : kUnknown), "the machine has"};
  for (const bool second : {true, false}) {
    const std::optional<Hierarchy> groups = hierarchy_of(root, second);
    if (groups) keep_least(room, group_limit(*groups, second), "the control group allows");
  }
  if (const auto space = soft_limit(RLIMIT_AS)) keep_least(room, *space, "ulimit -v allows");
  if (const auto data = soft_limit(RLIMIT_DATA)) keep_least(room, *data, "ulimit -d allows");
  return room;
}

Bytes usual_memory_limit() {
  constexpr std::int64_t kShare = 4;
  return Bytes(process_memory().bytes.value() / kShare);
}

BoundedMemory::BoundedMemory(Bytes limit, const std::string& flag) {
  bound = limit;
  bound_text = fmt::format("this takes more than the {} of memory that {} allows",
                           format_bytes(limit), flag);
  if (::getrlimit(RLIMIT_DATA, &before_) != 0 || kUnderSanitizer) return;
  // The system counts the stacks of threads as data, whole, whatever is used of them.
  constexpr std::int64_t kUsualStack = std::int64_t{8} << 20;
  const std::int64_t stack = soft_limit(RLIMIT_STACK).value_or(kUsualStack);
  const std::int64_t threads = 1 + std::int64_t{std::thread::hardware_concurrency()};
  rlimit bounded = before_;
  bounded.rlim_cur =
      static_cast<rlim_t>(data_in_use() + limit.value() + threads * std::min(stack, kUsualStack));
  if (bounded.rlim_cur < before_.rlim_cur) ::setrlimit(RLIMIT_DATA, &bounded);
}

BoundedMemory::~BoundedMemory() {
  bound.reset();
  if (std::uncaught_exceptions() == 0) bound_text.clear();
  if (!kUnderSanitizer) ::setrlimit(RLIMIT_DATA, &before_);
}

std::optional<Bytes> memory_bound() { return bound; }

std::string out_of_memory() {
  if (!bound_text.empty()) return bound_text;
  return "the system gives this process no more memory (what is free, or ulimit -v)";
}

}  // namespace shardwise
