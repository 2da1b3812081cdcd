#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "executor/tokenizer/regex.h"
#include "planner/spec/json/reader.h"

namespace shardwise::exec {

/// Splitter of a text into the pieces inside which a tokenizer merges: the `pre_tokenizer` of a
/// tokenizer.json. Source: github.com/huggingface/tokenizers, tokenizers/src/pre_tokenizers.
class PreTokenizer {
 public:
  using Visit = std::function<void(std::string_view piece)>;

  /// Reads a value of type Sequence, Split (Isolated or Removed), ByteLevel, Metaspace or Digits;
  /// null is none. Other types are problems, named, and so are over 100 in all and a second
  /// ByteLevel. \param path  of the value in the file
  static PreTokenizer read(const JsonValue& value, const std::string& file, const std::string& path,
                           Diagnostics& problems);

  /// Calls visit with each piece of a normalised text, in order. After ByteLevel a piece has a
  /// character for each byte (byte_character).
  /// \param at_start  whether the text begins where the input does, for Metaspace
  void split(std::string_view text, bool at_start, const Visit& visit) const {
    split(0, text, at_start, visit);
  }
  /// Whether models see bytes as characters.
  bool byte_level() const;

 private:
  struct Split {
    Regex pattern;
    bool removed = false;  // matches are left out rather than pieces of their own
    bool invert = false;   // what is between matches is matched
  };
  struct ByteLevel {
    bool prefix = false;  // a space before a text that has none
    bool words = true;    // split by GPT-2's expression
  };
  struct Metaspace {
    enum class Prepend { always, first, never };
    std::string replacement;  // of spaces
    Prepend prepend = Prepend::always;
    bool split = true;  // before each replacement
  };
  using Step = std::variant<Split, ByteLevel, Metaspace>;

  void add(const JsonValue& value, const std::string& file, const std::string& path,
           Diagnostics& problems);
  void split(std::size_t step, std::string_view text, bool at_start, const Visit& visit) const;
  void by_pattern(std::size_t step, const Split& split, std::string_view text, bool at_start,
                  const Visit& visit) const;
  void by_bytes(std::size_t step, const ByteLevel& bytes, std::string_view text,
                const Visit& visit) const;
  void by_metaspace(std::size_t step, const Metaspace& space, std::string_view text, bool at_start,
                    const Visit& visit) const;

  std::vector<Step> steps_;
};

/// The character, in UTF-8, that stands for a byte in byte-level vocabularies: itself where it is
/// printable in Latin-1, else U+0100 and on. Source: GPT-2, encoder.py, bytes_to_unicode.
const std::string& byte_character(unsigned char byte);

}  // namespace shardwise::exec
