#pragma once

#include <string>

namespace shardwise {

/// Prints expression, place and `values` to stderr and aborts. For our own mistakes only: what a
/// user wrote is a Diagnostic, what the world broke is an exception.
[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               const std::string& values);

}  // namespace shardwise

/// On in release builds too. `values` is a std::string that shows what was seen.
#define SHARDWISE_CHECK(condition, values)                                               \
  do {                                                                                   \
    if (!(condition)) ::shardwise::check_failed(#condition, __FILE__, __LINE__, values); \
  } while (false)
