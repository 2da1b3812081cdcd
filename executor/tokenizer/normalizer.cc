#include "executor/tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "planner/spec/text/check.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

const std::vector<std::string_view> kNormalizers = {"Sequence", "NFC",     "NFD",    "NFKC",
                                                    "NFKD",     "Prepend", "Replace"};

/// Published tokenizers have fewer than 20.
constexpr std::size_t kMostNormalizers = 100;
/// Replacements of replacements would double a text each time. No published one grows it by four.
constexpr std::size_t kMostGrowth = 64;
constexpr std::size_t kMostMade = 1'000'000;

std::string normal_form(std::string_view text, int options) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &made,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(made, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  SHARDWISE_CHECK(size >= 0, utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(made), static_cast<std::size_t>(size)};
}

}  // namespace

Regex read_pattern(ObjectReader& reader) {
  const JsonValue* const value = reader.object("pattern");
  const auto any = [] { return *Regex::literal(" "); };
  if (value == nullptr) return any();
  ObjectReader inner = reader.nested("pattern", *value);
  if (inner.has("Regex")) {
    const Result<Regex> regex = Regex::compile(inner.string("Regex"));
    inner.reject_unknown();
    if (regex) return *regex;
    inner.fail("Regex", regex.problems().front().message);
    return any();
  }
  const std::string text = inner.string("String");
  inner.reject_unknown();
  if (text.empty()) {
    if (inner.ok()) inner.fail("String", "is empty");
    return any();
  }
  const Result<Regex> literal = Regex::literal(text);
  if (literal) return *literal;
  inner.fail("String", literal.problems().front().message);
  return any();
}

void Normalizer::add(const JsonValue& value, const std::string& file, const std::string& path,
                     Diagnostics& problems) {
  ObjectReader reader(value, file, path, problems);
  const std::size_t type = reader.choice("type", kNormalizers);
  if (!reader.ok()) return;
  if (kNormalizers[type] == "Sequence") {
    const JsonValue* const list = reader.array("normalizers");
    reader.reject_unknown();
    if (list == nullptr) return;
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      // The first that is too many is named; the others are not read.
      if (!problems.empty() && steps_.size() == kMostNormalizers) return;
      add(list->elements[i], file, fmt::format("{}/normalizers/{}", path, i), problems);
    }
    return;
  }
  if (steps_.size() == kMostNormalizers) {
    return reader.fail("type", fmt::format("more than {} normalizers", kMostNormalizers));
  }
  if (kNormalizers[type] == "Prepend") {
    steps_.emplace_back(Prepend{reader.string("prepend")});
  } else if (kNormalizers[type] == "Replace") {
    Regex pattern = read_pattern(reader);
    steps_.emplace_back(Replace{std::move(pattern), reader.string("content")});
  } else {
    steps_.emplace_back(static_cast<Form>(type - 1));
  }
  reader.reject_unknown();
}

Normalizer Normalizer::read(const JsonValue& value, const std::string& file,
                            const std::string& path, Diagnostics& problems) {
  Normalizer normalizer;
  normalizer.add(value, file, path, problems);
  return normalizer;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string made(text);
  const std::size_t most = kMostMade + kMostGrowth * text.size();
  for (const Step& step : steps_) {
    if (const Form* const form = std::get_if<Form>(&step)) {
      constexpr int kForms[] = {UTF8PROC_COMPOSE, UTF8PROC_DECOMPOSE,
                                UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
      made = normal_form(made, UTF8PROC_STABLE | kForms[static_cast<std::size_t>(*form)]);
    } else if (const Prepend* const prepend = std::get_if<Prepend>(&step)) {
      if (!made.empty()) made.insert(0, prepend->text);
    } else {
      const Replace& replace = std::get<Replace>(step);
      std::string next;
      replace.pattern.split(made, [&](std::string_view piece, bool matched) {
        next += matched ? std::string_view(replace.content) : piece;
        if (next.size() <= most) return;
        throw IoError(fmt::format("the tokenizer's normalizer makes more than {} bytes of {}", most,
                                  text.size()));
      });
      made = std::move(next);
    }
  }
  return made;
}

}  // namespace shardwise::exec
