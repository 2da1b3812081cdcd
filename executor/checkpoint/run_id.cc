#include "executor/checkpoint/run_id.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

std::string new_run_id() {
  std::array<unsigned char, kUnnamedRun.size() / 2> bytes{};
  // Requests of up to 256 bytes are never cut short: getrandom(2).
  if (::getrandom(bytes.data(), bytes.size(), 0) < 0) {
    throw IoError(fmt::format("no random numbers: {}", std::strerror(errno)));
  }
  std::string run;
  for (const unsigned char byte : bytes) run += fmt::format("{:02x}", byte);
  return run;
}

bool is_run_id(std::string_view text) {
  return text.size() == kUnnamedRun.size() && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string short_run_id(std::string_view run) {
  constexpr std::size_t kShown = 8;
  return std::string(run.substr(0, kShown));
}

}  // namespace shardwise::exec
