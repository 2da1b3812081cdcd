#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A refusal has a reason, and no part of it can steer a terminal.
void check_messages(const Diagnostics& problems);

/// The JSON value in a fuzzer's input; nothing when it is refused, with good messages.
std::optional<JsonValue> parse_input(const std::uint8_t* bytes, std::size_t size);

/// Result of `read` for `input`; nothing when it is refused, with good messages.
template <class Input, class Read>
auto read_input(const Input& input, Read read) {
  auto result = read(input);
  using T = std::remove_cvref_t<decltype(*result)>;
  if (!result.ok()) {
    check_messages(result.problems());
    return std::optional<T>();
  }
  return std::optional<T>(*std::move(result));
}

}  // namespace shardwise
