#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/model/check_config.h"
#include "planner/model/transformer_config.h"
#include "planner/spec/reader.h"

namespace shardwise {

/// The keys of one Hugging Face config.json. Keys nobody asks for are ignored, as such files carry
/// many. What is asked for is checked; an absent key takes `fallback`, an explicit null is 0, which
/// means "none" or "derived" (transformers gives None the same meanings).
///
/// `field` is the name of TransformerConfig, `keys` are the family's names for it, the usual one
/// first.
class ConfigFile {
 public:
  using Keys = std::initializer_list<std::string_view>;

  /// \param path  JSON pointer of `root` in the file, "" for the whole file
  ConfigFile(const JsonValue& root, const std::string& file, const std::string& path,
             Diagnostics& problems);

  /// An integer of 1 to `high`.
  std::int64_t size(std::string_view field, Keys keys, std::int64_t fallback,
                    std::int64_t high = kMaxSize);
  /// An integer of 0 to `high`.
  std::int64_t count(std::string_view field, Keys keys, std::int64_t fallback,
                     std::int64_t high = kMaxSize);
  /// An integer of 1 to `high` that must be there.
  std::int64_t required(std::string_view field, std::string_view key, std::int64_t high);
  bool flag(std::string_view key, bool fallback);
  double number(std::string_view key, double fallback, double low, double high);
  std::string text(std::string_view key, const std::string& fallback);
  /// The name of an activation function, as in transformers' ACT2FN.
  Activation activation(Keys keys, Activation fallback);
  std::vector<std::int64_t> integers(std::string_view field, std::string_view key);
  /// Sliding window of each layer: from "layer_types" when given, else `window` where
  /// `slides(layer)`.
  template <class Slides>
  std::vector<std::int64_t> windows(std::int64_t layers, std::int64_t window, Slides slides);

  bool has(std::string_view key) const { return reader_.has(key); }
  ObjectReader& reader() { return reader_; }
  /// Resolves and checks the finished configuration in the words of this file.
  void check(TransformerConfig& config);

 private:
  std::int64_t integer(std::string_view field, Keys keys, std::int64_t fallback, std::int64_t low,
                       std::int64_t high);
  std::vector<std::int64_t> layer_types(std::int64_t window);
  void name(std::string_view field, std::string_view key) { keys_[std::string(field)] = key; }

  const JsonValue& root_;
  ObjectReader reader_;
  Diagnostics& problems_;
  std::map<std::string, std::string, std::less<>> keys_;  // field -> key of the file
  std::set<std::string, std::less<>> wrong_;              // fields with a problem
};

/// "gelu", "gelu_new", "silu", "swish" … as in transformers' ACT2FN; nothing when unknown.
std::optional<Activation> activation_from_name(std::string_view name);

template <class Slides>
std::vector<std::int64_t> ConfigFile::windows(std::int64_t layers, std::int64_t window,
                                              Slides slides) {
  if (has("layer_types")) return layer_types(window);
  std::vector<std::int64_t> result;
  if (window == 0 || layers > kMaxLayers) return result;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    result.push_back(slides(layer) ? window : 0);
  }
  return result;
}

}  // namespace shardwise
