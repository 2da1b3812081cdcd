#include "cli/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>

#include "planner/question/flags.h"
#include "planner/spec/text/number.h"

namespace shardwise::cli {
namespace {

constexpr Bytes kMostMemory = 1024_GiB * 1024;
constexpr std::int64_t kShare = 4;

/// What this process may use of the machine.
Bytes own_memory() {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  std::int64_t bytes = pages > 0 && page > 0 ? pages * page : kMostMemory.value();
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < static_cast<std::uint64_t>(bytes)) {
    bytes = static_cast<std::int64_t>(limit.rlim_cur);
  }
  return Bytes(bytes);
}

}  // namespace

void add_memory_limit(CLI::App& verb, std::string& text) {
  verb.add_option("--memory-limit", text,
                  "Memory of this machine that may be taken [a quarter of it]")
      ->type_name("SIZE");
}

Result<Bytes> read_memory_limit(const std::string& text) {
  if (text.empty()) return Bytes(own_memory().value() / kShare);
  Bytes limit{0};
  const std::string problem = read_size(text, 1_GiB, 1_MiB, kMostMemory, limit);
  if (!problem.empty()) return wrong_flag("--memory-limit", problem, "a number alone counts GiB");
  return limit;
}

}  // namespace shardwise::cli
