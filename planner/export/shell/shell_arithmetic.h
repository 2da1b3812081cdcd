#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shardwise {

/// The value of the text of $((…)): whole numbers, NAME, $NAME, ${NAME}, + - * / %, signs and
/// parentheses. Nothing where it has anything else, divides by zero or does not fit 64 bits. \param
/// value  of a variable
std::optional<std::int64_t> shell_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(const std::string& name)>& value);

}  // namespace shardwise
