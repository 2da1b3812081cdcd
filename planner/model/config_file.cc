#include "planner/model/config_file.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "planner/spec/utf8.h"

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

}  // namespace

std::optional<Activation> activation_from_name(std::string_view name) {
  for (const auto& [known, activation] : kActivations) {
    if (known == name) return activation;
  }
  return std::nullopt;
}

ConfigFile::ConfigFile(const JsonValue& root, const std::string& file, const std::string& path,
                       Diagnostics& problems)
    : root_(root), reader_(root, file, path, problems), problems_(problems) {}

std::int64_t ConfigFile::integer(std::string_view field, Keys keys, std::int64_t fallback,
                                 std::int64_t low, std::int64_t high) {
  name(field, *keys.begin());
  for (const std::string_view key : keys) {
    const bool given = reader_.has(key);
    const bool null = !given && root_.find(key) != nullptr;
    if (!given && !null) continue;
    name(field, key);
    if (null) return 0;
    const std::size_t before = problems_.size();
    const std::int64_t result = reader_.integer_or(key, fallback, low, high);
    if (problems_.size() > before) wrong_.emplace(field);
    return result;
  }
  return fallback;
}

std::int64_t ConfigFile::size(std::string_view field, Keys keys, std::int64_t fallback,
                              std::int64_t high) {
  return integer(field, keys, fallback, 1, high);
}

std::int64_t ConfigFile::count(std::string_view field, Keys keys, std::int64_t fallback,
                               std::int64_t high) {
  return integer(field, keys, fallback, 0, high);
}

std::int64_t ConfigFile::required(std::string_view field, std::string_view key, std::int64_t high) {
  name(field, key);
  const std::size_t before = problems_.size();
  const std::int64_t result = reader_.integer(key, 1, high);
  if (problems_.size() > before) wrong_.emplace(field);
  return result;
}

bool ConfigFile::flag(std::string_view key, bool fallback) {
  return reader_.boolean_or(key, fallback);
}

double ConfigFile::number(std::string_view key, double fallback, double low, double high) {
  return reader_.number_or(key, fallback, low, high);
}

std::string ConfigFile::text(std::string_view key, const std::string& fallback) {
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
  return fallback;
}

std::vector<std::int64_t> ConfigFile::integers(std::string_view field, std::string_view key) {
  name(field, key);
  std::vector<std::int64_t> result;
  if (!has(key)) return result;
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

void ConfigFile::check(TransformerConfig& config) {
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
