#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardwise {

/// One thing wrong with something the user wrote.
struct Diagnostic {
  std::string file;     // as the user named it; "command line" for flags
  int line = 0;         // 1-based; 0 when the value is absent
  int column = 0;       // 1-based; 0 when unknown
  std::string path;     // JSON pointer, or the flag (--tp)
  std::string message;  // what is wrong, with the offending value
  std::string hint;     // what would be right; empty when unknown
};

using Diagnostics = std::vector<Diagnostic>;

/// Where the list of what is wrong with one file stops.
inline constexpr std::size_t kMostListedProblems = 100;

/// `file:line:col: pointer: message`, then the hint indented on its own line. Control characters
/// are escaped and overlong parts cut, so a message may quote whatever a file says.
std::string to_string(const Diagnostic& diagnostic);
/// All of them in the order of their places, then "N problems, nothing was run".
std::string to_string(const Diagnostics& diagnostics);

/// A value, or everything wrong with the input that should have given it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}                        // NOLINT(*explicit*)
  Result(Diagnostics diagnostics) : state_(std::move(diagnostics)) {}  // NOLINT(*explicit*)
  Result(Diagnostic diagnostic)
      : state_(Diagnostics{std::move(diagnostic)}) {}  // NOLINT(*explicit*)

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  const T& operator*() const& { return std::get<T>(state_); }
  T& operator*() & { return std::get<T>(state_); }
  T&& operator*() && { return std::get<T>(std::move(state_)); }
  const T* operator->() const { return &std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }
  /// \pre !ok()
  const Diagnostics& problems() const { return std::get<Diagnostics>(state_); }

 private:
  std::variant<T, Diagnostics> state_;
};

}  // namespace shardwise
