#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// The variables by which a launcher tells its processes who they are. A variable that is set is
/// believed or refused: each reading adds a problem for a value that cannot be used, an empty one
/// included.
class LauncherVariables {
 public:
  /// The value of a variable of the environment, nullptr when it is not set.
  using Variable = std::function<const char*(const char*)>;

  explicit LauncherVariables(Variable variable) : variable_(std::move(variable)) {}

  bool is_set(const char* name) const { return variable_(name) != nullptr; }
  /// Its value, empty when it is not set. For texts that may be anything.
  std::string text(const char* name) const;
  /// A text that must be set and not empty; empty after a problem.
  std::string required_text(const char* name, const std::string& hint);
  /// A whole number from `least` to `most`; nothing when it is not set, or after a problem.
  std::optional<std::int64_t> number(const char* name, std::int64_t least, std::int64_t most);
  /// Reads likewise, and has a problem when it is not set.
  std::optional<std::int64_t> required_number(const char* name, std::int64_t least,
                                              std::int64_t most);
  /// A set number that has to be another, which `as` says.
  void expect(const char* name, std::int64_t value, const std::string& as);
  void refuse(const char* name, std::string message, std::string hint);

  const Diagnostics& problems() const { return problems_; }

 private:
  Variable variable_;
  Diagnostics problems_;
};

}  // namespace shardwise::exec
