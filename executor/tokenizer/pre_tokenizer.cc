#include "executor/tokenizer/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "executor/tokenizer/normalizer.h"

namespace shardwise::exec {
namespace {

const std::vector<std::string_view> kPreTokenizers = {"Sequence", "Split", "ByteLevel", "Metaspace",
                                                      "Digits"};
/// Published tokenizers have fewer than 10.
constexpr std::size_t kMostPreTokenizers = 100;
// Source: GPT-2, encoder.py.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> characters;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const unsigned code = printable ? byte : next++;
    std::string& character = characters[byte];
    if (code < 0x80) {
      character = static_cast<char>(code);
    } else {
      character = {static_cast<char>(0xC0U | (code >> 6U)),
                   static_cast<char>(0x80U | (code & 0x3FU))};
    }
  }
  return characters;
}

const Regex& gpt2_words() {
  static const Regex kWords = *Regex::compile(kGpt2);
  return kWords;
}

}  // namespace

const std::string& byte_character(unsigned char byte) {
  static const std::array<std::string, 256> kCharacters = byte_characters();
  return kCharacters[byte];
}

void PreTokenizer::add(const JsonValue& value, const std::string& file, const std::string& path,
                       Diagnostics& problems) {
  ObjectReader reader(value, file, path, problems);
  const std::size_t type = reader.choice("type", kPreTokenizers);
  if (!reader.ok()) return;
  if (kPreTokenizers[type] == "Sequence") {
    const JsonValue* const list = reader.array("pretokenizers");
    for (std::size_t i = 0; list != nullptr && i < list->elements.size(); ++i) {
      // The first that is too many is named; the others are not read.
      if (!problems.empty() && steps_.size() == kMostPreTokenizers) break;
      add(list->elements[i], file, fmt::format("{}/pretokenizers/{}", path, i), problems);
    }
  } else if (steps_.size() == kMostPreTokenizers) {
    return reader.fail("type", fmt::format("more than {} pre-tokenizers", kMostPreTokenizers));
  } else if (kPreTokenizers[type] == "Split") {
    Regex pattern = read_pattern(reader);
    const bool removed = reader.choice("behavior", {"Isolated", "Removed"}) == 1;
    steps_.emplace_back(Split{std::move(pattern), removed, reader.boolean_or("invert", false)});
  } else if (kPreTokenizers[type] == "Digits") {
    const bool each = reader.boolean_or("individual_digits", false);
    steps_.emplace_back(Split{*Regex::compile(each ? R"(\p{N})" : R"(\p{N}+)"), false, false});
  } else if (kPreTokenizers[type] == "ByteLevel") {
    if (byte_level()) reader.fail("type", "a second ByteLevel");  // would double the text
    reader.boolean_or("trim_offsets", true);  // of places in the text, which are not kept
    const bool prefix = reader.boolean_or("add_prefix_space", true);
    steps_.emplace_back(ByteLevel{prefix, reader.boolean_or("use_regex", true)});
  } else {
    Metaspace space;
    space.replacement = reader.string_or("replacement", "▁");
    reader.string_or("str_rep", "");
    // Files from before prepend_scheme say whether a space goes first.
    const bool always = reader.boolean_or("add_prefix_space", true);
    space.prepend = static_cast<Metaspace::Prepend>(
        reader.choice_or("prepend_scheme", always ? 0 : 2, {"always", "first", "never"}));
    space.split = reader.boolean_or("split", true);
    if (space.replacement.empty()) reader.fail("replacement", "is empty");
    // One with a space would be replaced again by the next.
    if (space.replacement.find(' ') != std::string::npos) reader.fail("replacement", "has a space");
    steps_.emplace_back(std::move(space));
  }
  reader.reject_unknown();
}

PreTokenizer PreTokenizer::read(const JsonValue& value, const std::string& file,
                                const std::string& path, Diagnostics& problems) {
  PreTokenizer made;
  made.add(value, file, path, problems);
  return made;
}

bool PreTokenizer::byte_level() const {
  return std::ranges::any_of(steps_,
                             [](const Step& s) { return std::holds_alternative<ByteLevel>(s); });
}

void PreTokenizer::split(std::size_t step, std::string_view text, bool at_start,
                         const Visit& visit) const {
  if (text.empty()) return;
  if (step == steps_.size()) return visit(text);
  const Step& how = steps_[step];
  if (const Split* const pattern = std::get_if<Split>(&how)) {
    by_pattern(step, *pattern, text, at_start, visit);
  } else if (const ByteLevel* const bytes = std::get_if<ByteLevel>(&how)) {
    by_bytes(step, *bytes, text, visit);
  } else {
    by_metaspace(step, std::get<Metaspace>(how), text, at_start, visit);
  }
}

void PreTokenizer::by_pattern(std::size_t step, const Split& split, std::string_view text,
                              bool at_start, const Visit& visit) const {
  split.pattern.split(text, [&](std::string_view piece, bool matched) {
    if (split.removed && matched != split.invert) return;
    this->split(step + 1, piece, at_start && piece.data() == text.data(), visit);
  });
}

void PreTokenizer::by_bytes(std::size_t step, const ByteLevel& bytes, std::string_view text,
                            const Visit& visit) const {
  std::string prefixed;
  if (bytes.prefix && text.front() != ' ') {
    prefixed = " ";
    prefixed += text;
    text = prefixed;
  }
  std::string characters;
  const auto emit = [&](std::string_view piece) {
    characters.clear();
    for (const char c : piece) characters += byte_character(static_cast<unsigned char>(c));
    split(step + 1, characters, false, visit);
  };
  if (!bytes.words) return emit(text);
  gpt2_words().split(text, [&](std::string_view piece, bool) { emit(piece); });
}

void PreTokenizer::by_metaspace(std::size_t step, const Metaspace& space, std::string_view text,
                                bool at_start, const Visit& visit) const {
  std::string replaced;
  for (const char c : text) {
    if (c == ' ') {
      replaced += space.replacement;
    } else {
      replaced += c;
    }
  }
  const bool prepends = space.prepend == Metaspace::Prepend::always ||
                        (space.prepend == Metaspace::Prepend::first && at_start);
  if (prepends && !replaced.starts_with(space.replacement)) replaced.insert(0, space.replacement);
  if (!space.split) return split(step + 1, replaced, at_start, visit);
  std::size_t begin = 0;
  while (begin < replaced.size()) {
    const std::size_t next = replaced.find(space.replacement, begin + 1);
    const std::size_t end = std::min(next, replaced.size());
    split(step + 1, std::string_view(replaced).substr(begin, end - begin), at_start && begin == 0,
          visit);
    begin = end;
  }
}

}  // namespace shardwise::exec
