#include "planner/model/families/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "planner/spec/text/nearest.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

// transformers 4.57.6, activations.py, ACT2CLS: those that trained transformers use. The kinds
// cost the same within a name: what differs is the polynomial.
constexpr std::array<std::pair<std::string_view, Activation>, 11> kActivations = {{
    {"gelu", Activation::gelu},
    {"gelu_10", Activation::gelu},
    {"gelu_accurate", Activation::gelu},
    {"gelu_fast", Activation::gelu},
    {"gelu_new", Activation::gelu},
    {"gelu_python", Activation::gelu},
    {"gelu_pytorch_tanh", Activation::gelu},
    {"quick_gelu", Activation::gelu},
    {"relu", Activation::relu},
    {"silu", Activation::silu},
    {"swish", Activation::silu},
}};

std::string_view shown_activation(Activation activation) {
  for (const auto& [name, known] : kActivations) {
    if (known == activation) return name;
  }
  return {};
}

}  // namespace

std::optional<Activation> activation_from_name(std::string_view name) {
  for (const auto& [known, activation] : kActivations) {
    if (known == name) return activation;
  }
  return std::nullopt;
}

ConfigFile::ConfigFile(const JsonValue& root, const std::string& file, const std::string& path,
                       Diagnostics& problems)
    : root_(root),
      nested_(!path.empty()),
      reader_(root, file, path, problems),
      problems_(problems) {}

void ConfigFile::assume(std::string_view key, const std::string& value) {
  assumed_.push_back(fmt::format("{} {}", key, value));
}

std::optional<std::int64_t> ConfigFile::integer(std::string_view field, Keys keys, std::int64_t low,
                                                std::int64_t high) {
  name(field, *keys.begin());
  std::optional<std::int64_t> result;
  std::string_view first;
  for (const std::string_view key : keys) {
    asked_.emplace(key);
    const bool given = reader_.has(key);
    const bool null = !given && root_.find(key) != nullptr;
    if (!given && (!null || result)) continue;
    std::int64_t value = 0;
    if (given) {
      const std::size_t before = problems_.size();
      value = reader_.integer_or(key, low, low, high);
      if (problems_.size() > before) wrong_.emplace(field);
    }
    if (!result || (*result == 0 && null)) {
      result = value;
      first = key;
      name(field, key);
    } else if (*result != value && !wrong_.contains(field)) {
      reader_.fail(key, fmt::format("{}, but {} is {}", value, first, *result),
                   fmt::format("{} and {} are one number: take one of them out", first, key));
      wrong_.emplace(field);
    }
  }
  return result;
}

std::int64_t ConfigFile::needed(std::string_view field, Keys keys, std::int64_t high,
                                std::int64_t class_default) {
  const std::optional<std::int64_t> found = integer(field, keys, 1, high);
  if (found) return *found;
  if (nested_ && class_default > 0) {
    assume(*keys.begin(), std::to_string(class_default));
    return class_default;
  }
  wrong_.emplace(field);
  missing_.push_back({{keys.begin(), keys.end()}, high});
  return 1;
}

std::int64_t ConfigFile::size(std::string_view field, Keys keys, std::int64_t fallback,
                              std::int64_t high) {
  const std::optional<std::int64_t> found = integer(field, keys, 1, high);
  if (!found) assume(*keys.begin(), fallback == 0 ? "derived" : std::to_string(fallback));
  return found.value_or(fallback);
}

std::int64_t ConfigFile::count(std::string_view field, Keys keys, std::int64_t fallback,
                               std::int64_t high) {
  const std::optional<std::int64_t> found = integer(field, keys, 0, high);
  if (!found) assume(*keys.begin(), fallback == 0 ? "none" : std::to_string(fallback));
  return found.value_or(fallback);
}

bool ConfigFile::flag(std::string_view key, bool fallback) {
  if (!has(key)) assume(key, fallback ? "true" : "false");
  return reader_.boolean_or(key, fallback);
}

void ConfigFile::refuse_flag(std::string_view key) {
  if (!reader_.boolean_or(key, false)) return;
  reader_.fail(key, "true adds parameters that are not modelled here",
               "describe the model by hand (docs/models.md) or take the key out");
}

double ConfigFile::number(std::string_view key, double fallback, double low, double high) {
  if (!has(key)) assume(key, fmt::format("{:g}", fallback));
  return reader_.number_or(key, fallback, low, high);
}

std::string ConfigFile::text(std::string_view key, const std::string& fallback) {
  if (!has(key)) assume(key, fallback);
  return reader_.string_or(key, fallback);
}

Activation ConfigFile::activation(Keys keys, Activation fallback) {
  for (const std::string_view key : keys) {
    if (!has(key)) continue;
    const std::size_t before = problems_.size();
    const std::string written = reader_.string(key);
    if (problems_.size() > before) return fallback;
    if (const auto known = activation_from_name(written)) return *known;
    std::string names;
    for (const auto& [text, activation] : kActivations) {
      if (!names.empty()) names += ", ";
      names += text;
    }
    reader_.fail(key, fmt::format("\"{}\" is not an activation known here", shown(written)),
                 "use one of " + names);
    return fallback;
  }
  assume(*keys.begin(), std::string(shown_activation(fallback)));
  return fallback;
}

std::vector<std::int64_t> ConfigFile::integers(std::string_view field, std::string_view key) {
  name(field, key);
  std::vector<std::int64_t> result;
  if (!has(key)) {
    assume(key, "none");
    return result;
  }
  const JsonValue* array = reader_.array(key);
  if (array == nullptr) return result;
  for (const JsonValue& element : array->elements) {
    if (element.kind != JsonValue::Kind::integer) {
      reader_.fail(key, "holds something other than integers");
      wrong_.emplace(field);
      return {};
    }
    result.push_back(element.integer);
  }
  return result;
}

std::vector<std::int64_t> ConfigFile::layer_types(std::int64_t window) {
  name("windows", "layer_types");
  std::vector<std::int64_t> result;
  const JsonValue* array = reader_.array("layer_types");
  if (array == nullptr) {
    wrong_.emplace("windows");
    return result;
  }
  for (const JsonValue& element : array->elements) {
    if (element.string == "sliding_attention") {
      result.push_back(window);
    } else if (element.string == "full_attention") {
      result.push_back(0);
    } else {
      const std::string entry = element.kind == JsonValue::Kind::string
                                    ? fmt::format("\"{}\"", shown(element.string))
                                    : std::string("an entry");
      reader_.fail("layer_types", entry + " is not a kind of attention known here",
                   "use \"full_attention\" or \"sliding_attention\"");
      wrong_.emplace("windows");
      return {};
    }
  }
  return result;
}

void ConfigFile::reject_missing() {
  for (const Missing& missing : missing_) {
    const auto slip_of = [&](const JsonMember& member) {
      return !asked_.contains(member.key) &&
             std::ranges::any_of(missing.keys, [&](const std::string& key) {
               return is_one_slip(member.key, key);
             });
    };
    if (std::ranges::any_of(root_.members, slip_of)) continue;  // reject_slips says it
    std::string hint = fmt::format("add it: {} to {}", 1, missing.high);
    if (missing.keys.size() > 1) {
      hint += fmt::format("; {} {} understood too",
                          fmt::join(missing.keys.begin() + 1, missing.keys.end(), " and "),
                          missing.keys.size() > 2 ? "are" : "is");
    }
    reader_.fail(missing.keys.front(), "missing", std::move(hint));
  }
}

void ConfigFile::check(TransformerConfig& config) {
  reject_missing();
  reader_.reject_slips();
  const auto key_of = [this](std::string_view field) {
    const auto known = keys_.find(field);
    return known == keys_.end() ? std::string(field) : known->second;
  };
  const auto fail = [&](std::string_view field, std::string message, std::string hint) {
    const std::string key = key_of(field);
    const JsonValue* value = root_.find(key);
    if (value != nullptr && value->kind == JsonValue::Kind::null) {
      message = "null, but a value is needed";
    }
    reader_.fail(key, std::move(message), std::move(hint));
  };
  const auto usable = [this](std::string_view field) { return !wrong_.contains(field); };
  resolve_and_check(config, {.key_of = key_of, .usable = usable, .fail = fail});
}

}  // namespace shardwise
