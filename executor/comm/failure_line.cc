#include "executor/comm/failure_line.h"

#include <fmt/format.h>

namespace shardwise::exec {

std::string failure_line(int rank, const std::string& place, std::string why) {
  const std::string name = fmt::format("rank {}", rank);
  if (why.starts_with(name + ": ")) why.erase(0, name.size() + 2);
  return fmt::format("{}{}: {}", name, place.empty() ? "" : ", " + place, why);
}

std::string failure_line(int rank, const std::string& place, const std::exception& broken) {
  return failure_line(rank, place, reason_of(broken));
}

Failure failure_of(int rank, const std::string& place, const std::exception& broken) {
  const bool between = dynamic_cast<const BetweenRanks*>(&broken) != nullptr;
  return {between ? Failure::Kind::hung : Failure::Kind::broken, failure_line(rank, place, broken)};
}

}  // namespace shardwise::exec
