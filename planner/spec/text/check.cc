#include "planner/spec/text/check.h"

#include <cstdio>
#include <cstdlib>

namespace shardwise {

void check_failed(const char* expression, const char* file, int line, const std::string& values) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", file, line, expression,
               values.c_str());
  std::abort();
}

}  // namespace shardwise
