#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace shardwise::exec::test {

/// What an IoError says that `body` throws in a process of its own, which may take `bytes` of
/// address space more than it has: "nothing" where it throws none, "killed" where it is not over
/// after 60 s or a signal ends it. Sanitizers need address space themselves: "sanitized" then.
std::string error_within(std::int64_t bytes, const std::function<void()>& body);

}  // namespace shardwise::exec::test
