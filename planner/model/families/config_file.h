#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/model/families/check_config.h"
#include "planner/model/families/transformer_config.h"
#include "planner/spec/json/reader.h"

namespace shardwise {

/// The keys of one Hugging Face config.json. Keys without a reader are ignored, as such files carry
/// many. Keys with one are checked. An absent key is a problem (`needed`) or takes `fallback`,
/// which is then listed in `assumed`: no default is silent. An explicit null is 0, which means
/// "none" or "derived" (transformers gives None the same meanings).
///
/// `field` is the name of TransformerConfig. `keys` are the family's names for it, the usual one
/// first; two of them with different numbers are a problem.
class ConfigFile {
 public:
  using Keys = std::initializer_list<std::string_view>;

  /// \param path  JSON pointer of `root` in the file, "" for the whole file
  ConfigFile(const JsonValue& root, const std::string& file, const std::string& path,
             Diagnostics& problems);

  /// An integer of 1 to `high` that must be there. A configuration inside another may leave out
  /// what equals the default of its class, as transformers saves it: `class_default`, if not 0.
  std::int64_t needed(std::string_view field, Keys keys, std::int64_t high = kMaxSize,
                      std::int64_t class_default = 0);
  /// An integer of 1 to `high`; a fallback of 0 stands for "derived".
  std::int64_t size(std::string_view field, Keys keys, std::int64_t fallback,
                    std::int64_t high = kMaxSize);
  /// An integer of 0 to `high`; 0 stands for "none".
  std::int64_t count(std::string_view field, Keys keys, std::int64_t fallback,
                     std::int64_t high = kMaxSize);
  bool flag(std::string_view key, bool fallback);
  double number(std::string_view key, double fallback, double low, double high);
  std::string text(std::string_view key, const std::string& fallback);
  /// The name of an activation function, as in transformers' ACT2FN.
  Activation activation(Keys keys, Activation fallback);
  std::vector<std::int64_t> integers(std::string_view field, std::string_view key);
  /// Sliding window of each layer: from "layer_types" when given, else `window` where
  /// `slides(layer)`.
  /// \param rule  that rule in words when the family's files have "layer_types"; else ""
  template <class Slides>
  std::vector<std::int64_t> windows(std::int64_t layers, std::int64_t window, std::string_view rule,
                                    Slides slides);
  /// A flag that adds parameters which this reader does not build: a problem when it is true.
  void refuse_flag(std::string_view key);

  /// Absent keys with what was taken for them: "head_dim 128".
  const std::vector<std::string>& assumed() const { return assumed_; }
  void assume(std::string_view key, const std::string& value);

  bool has(std::string_view key) const { return reader_.has(key); }
  ObjectReader& reader() { return reader_; }
  /// Resolves and checks the finished configuration in the words of this file.
  void check(TransformerConfig& config);

 private:
  struct Missing {
    std::vector<std::string> keys;
    std::int64_t high = 0;
  };
  /// The first of `keys` in the file, whose number every other one there must have; or nothing.
  std::optional<std::int64_t> integer(std::string_view field, Keys keys, std::int64_t low,
                                      std::int64_t high);
  std::vector<std::int64_t> layer_types(std::int64_t window);
  void reject_missing();
  void name(std::string_view field, std::string_view key) { keys_[std::string(field)] = key; }

  const JsonValue& root_;
  const bool nested_;  // inside another configuration
  ObjectReader reader_;
  Diagnostics& problems_;
  std::map<std::string, std::string, std::less<>> keys_;  // field -> key of the file
  std::set<std::string, std::less<>> wrong_;              // fields with a problem
  std::vector<std::string> assumed_;
  std::vector<Missing> missing_;
  std::set<std::string, std::less<>> asked_;  // keys of integers
};

/// "gelu", "gelu_new", "silu", "swish" … as in transformers' ACT2FN; nothing when unknown.
std::optional<Activation> activation_from_name(std::string_view name);

template <class Slides>
std::vector<std::int64_t> ConfigFile::windows(std::int64_t layers, std::int64_t window,
                                              std::string_view rule, Slides slides) {
  if (has("layer_types")) return layer_types(window);
  std::vector<std::int64_t> result;
  if (window == 0 || layers > kMaxLayers) return result;
  if (!rule.empty()) assume("layer_types", std::string(rule));
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    result.push_back(slides(layer) ? window : 0);
  }
  return result;
}

}  // namespace shardwise
