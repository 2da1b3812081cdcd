#include "planner/question/flags.h"

#include <algorithm>
#include <utility>

namespace shardwise {

std::string flag_of(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

Diagnostic wrong_flag(std::string flag, std::string message, std::string hint) {
  return {"command line", 0, 0, std::move(flag), std::move(message), std::move(hint)};
}

}  // namespace shardwise
