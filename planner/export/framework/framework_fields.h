#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/export/framework/conditions.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/json/reader.h"

namespace shardwise {

/// Fields of a framework's file, each empty where its key is not there.

/// The name under `key`, as its place among `names`.
template <class E, std::size_t kCount>
E read_choice(ObjectReader& reader, std::string_view key,
              const std::array<std::string_view, kCount>& names, E otherwise) {
  return static_cast<E>(
      reader.choice_or(key, static_cast<std::size_t>(otherwise), {names.begin(), names.end()}));
}

std::vector<std::string> texts_under(ObjectReader& reader, std::string_view key);

/// {"tp": {"above": 1}, "precision": ["bf16", "fp16"]}: each a value, a list, or an object of one
/// of not, has, beyond, above, below, stated.
Conditions conditions_under(ObjectReader& reader, std::string_view key);

Values values_under(ObjectReader& reader, std::string_view key);

/// {"full": "true", "none": ["false", "no"]}: each key with each of its values.
std::vector<std::pair<std::string, std::string>> pairs_under(ObjectReader& reader,
                                                             std::string_view key);

/// A setting without its default.
SettingSpec setting_of(ObjectReader& reader);

}  // namespace shardwise
