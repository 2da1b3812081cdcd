#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "executor/tokenizer/regex.h"
#include "planner/spec/json/reader.h"

namespace shardwise::exec {

/// Changes that a tokenizer makes to a text before it is split: `normalizer` of tokenizer.json.
/// Source: github.com/huggingface/tokenizers, tokenizers/src/normalizers.
class Normalizer {
 public:
  /// Reads a value of type Sequence, NFC, NFD, NFKC, NFKD, Prepend or Replace; null is none. Other
  /// types are problems, named, and so are over 100 in all. \param path  of the value in the file
  static Normalizer read(const JsonValue& value, const std::string& file, const std::string& path,
                         Diagnostics& problems);

  /// \pre text is UTF-8
  /// \throws IoError where replacements make a text of more than 64 times its size and 1 MB
  std::string apply(std::string_view text) const;
  bool empty() const { return steps_.empty(); }

 private:
  enum class Form { nfc, nfd, nfkc, nfkd };
  struct Prepend {
    std::string text;  // before a text that is not empty
  };
  struct Replace {
    Regex pattern;
    std::string content;
  };
  using Step = std::variant<Form, Prepend, Replace>;

  void add(const JsonValue& value, const std::string& file, const std::string& path,
           Diagnostics& problems);
  std::vector<Step> steps_;
};

/// A `pattern` of tokenizer.json: {"String": text} or {"Regex": expression}. A literal space after
/// a problem.
Regex read_pattern(ObjectReader& reader);

}  // namespace shardwise::exec
