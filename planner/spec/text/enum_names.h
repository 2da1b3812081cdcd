#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace shardwise {

/// The names of an enumeration's values in their order, as JSON and flags spell them.
template <class E>
inline constexpr std::array<std::string_view, 0> kNamesOf;

/// Compilers write the value of a template argument as "= shardwise::Axis::pp" when it has a name,
/// as "= (shardwise::Axis)6" when it has none.
template <auto kValue>
consteval bool has_name() {
  return std::string_view(__PRETTY_FUNCTION__).find("= (") == std::string_view::npos;
}
template <class E>
inline constexpr bool kAllNamed = !has_name<static_cast<E>(kNamesOf<E>.size())>();

template <class E>
requires(kNamesOf<E>.size() > 0) constexpr std::string_view name_of(E value) {
  static_assert(kAllNamed<E>, "a value was added to the enumeration: name it");
  return kNamesOf<E>[static_cast<std::size_t>(value)];
}

template <class E>
requires(kNamesOf<E>.size() > 0) constexpr std::optional<E> from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNamesOf<E>.size(); ++i) {
    if (kNamesOf<E>[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

/// All values of an enumeration in their order.
template <class E>
requires(kNamesOf<E>.size() > 0) std::vector<E> values_of() {
  std::vector<E> values;
  for (std::size_t i = 0; i < kNamesOf<E>.size(); ++i) values.push_back(static_cast<E>(i));
  return values;
}

/// All names of an enumeration, for ObjectReader::choice.
template <class E>
requires(kNamesOf<E>.size() > 0) std::vector<std::string_view> names_of() {
  return {kNamesOf<E>.begin(), kNamesOf<E>.end()};
}

}  // namespace shardwise
