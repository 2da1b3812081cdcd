#include "planner/spec/json/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "planner/spec/json/json_problem.h"
#include "planner/spec/json/python_json.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostTextProblems = 20;  // of the text itself; then reading stops

constexpr int kNumberOverflow = 406;  // nlohmann's number of this error
constexpr std::string_view kNot64Bits = "does not fit 64 bits";

struct Place {
  int line = 1;
  int column = 1;  // in characters, not bytes, as editors count
};

/// Moves `place` over `text[from, to)`.
Place moved(Place place, std::string_view text, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++place.column;
    }
  }
  return place;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<std::pair<std::string_view, double>, 3> kPythonNumbers = {
    {{"NaN", std::numeric_limits<double>::quiet_NaN()},
     {"Infinity", kInfinity},
     {"-Infinity", -kInfinity}}};

/// What a text begins with, when that is a number of Python's and of no JSON.
std::optional<double> python_number(std::string_view text) {
  for (const auto& [word, value] : kPythonNumbers) {
    if (text.starts_with(word)) return value;
  }
  return std::nullopt;
}

/// The text with 0.0 and blanks in place of each number of Python's, so that places stay.
std::string without_python_numbers(std::string_view text) {
  std::string made(text);
  bool in_string = false;
  bool begins = true;  // a token
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
      continue;
    }
    for (const auto& [word, value] : kPythonNumbers) {
      if (!begins || !text.substr(at).starts_with(word)) continue;
      made.replace(at, word.size(), std::string("0.0").append(word.size() - 3, ' '));
      at += word.size() - 1;
      break;
    }
    in_string = c == '"';
    begins = std::string_view(" \t\r\n,:[").find(c) != std::string_view::npos;
  }
  return made;
}

/// Builds the tree from nlohmann's events. They come in the order of the text and each stands for
/// one token that was found well-formed, so walking the text in step with them gives every value's
/// place; the parser itself knows only how far it has read.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, const std::string& file, std::size_t most_values)
      : text_(text), file_(file), most_values_(most_values) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") cursor_ = 3;  // byte order mark; has no column
  }

  bool null() override { return add(JsonValue::Kind::null) != nullptr; }
  bool boolean(bool value) override {
    JsonValue* added = add(JsonValue::Kind::boolean);
    if (added != nullptr) added->boolean = value;
    return added != nullptr;
  }
  bool number_integer(std::int64_t value) override { return add_integer(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return add_too_large(std::to_string(value), kNot64Bits);
    }
    return add_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& digits) override {
    if (digits.find_first_of(".eE") == std::string::npos) return add_too_large(digits, kNot64Bits);
    JsonValue* added = add(JsonValue::Kind::number);
    if (added != nullptr) added->number = python_number(text_.substr(token_)).value_or(value);
    return added != nullptr;
  }
  bool string(std::string& value) override {
    JsonValue* added = add(JsonValue::Kind::string);
    if (added != nullptr) added->string = std::move(value);
    return added != nullptr;
  }
  bool binary(binary_t& /*value*/) override { return false; }  // not in JSON text

  bool start_object(std::size_t /*elements*/) override { return open(JsonValue::Kind::object); }
  bool start_array(std::size_t /*elements*/) override { return open(JsonValue::Kind::array); }
  bool key(std::string& value) override {
    next_token();
    open_.back()->members.push_back({std::move(value), JsonValue()});
    return true;
  }
  bool end_object() override { return find_duplicates(*open_.back()) && close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    if (error.id == kNumberOverflow) {
      add_too_large(token, "is too large, the largest number is 1.8e308");
    } else {
      syntax_problem(position == 0 ? 0 : position - 1, error.what());
    }
    return false;
  }

  Result<JsonValue> result() && {
    if (!problems_.empty()) return std::move(problems_);
    return std::move(root_);
  }

 private:
  // Skips what stands between values and returns the place of the next token; the cursor moves
  // behind that token.
  Place next_token() {
    std::size_t start = text_.find_first_not_of(" \t\r\n,:", cursor_);
    start = std::min(start, text_.size());
    token_ = start;
    const Place place = moved(here_, text_, cursor_, start);
    std::size_t end = start + 1;
    if (start < text_.size() && text_[start] == '"') {
      while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2U : 1U;
      ++end;
    } else if (start < text_.size() && std::strchr("{}[]", text_[start]) == nullptr) {
      end = text_.find_first_of(" \t\r\n,:{}[]", start);
    }
    end = std::min(end, text_.size());
    here_ = moved(place, text_, start, end);
    cursor_ = end;
    return place;
  }

  JsonValue* add(JsonValue::Kind kind) {
    const Place place = next_token();
    if (++values_ > most_values_) {
      problems_.push_back({file_, place.line, place.column, "",
                           fmt::format("more than {} values in one file", most_values_), ""});
      return nullptr;
    }
    JsonValue* slot = &root_;
    if (!open_.empty()) {
      JsonValue& parent = *open_.back();
      slot = parent.kind == JsonValue::Kind::array ? &parent.elements.emplace_back()
                                                   : &parent.members.back().value;
    }
    slot->kind = kind;
    slot->line = place.line;
    slot->column = place.column;
    return slot;
  }

  bool add_integer(std::int64_t value) {
    JsonValue* added = add(JsonValue::Kind::integer);
    if (added == nullptr) return false;
    added->integer = value;
    added->number = static_cast<double>(value);
    return true;
  }

  bool add_too_large(const std::string& digits, std::string_view why) {
    const JsonValue* added = add(JsonValue::Kind::number);
    if (added == nullptr) return false;
    problems_.push_back({file_, added->line, added->column, current_path(),
                         fmt::format("{} {}", shown(digits), why), ""});
    return problems_.size() < kMostTextProblems;
  }

  bool open(JsonValue::Kind kind) {
    JsonValue* added = add(kind);
    if (added == nullptr) return false;
    if (open_.size() == kDeepest) {
      problems_.push_back({file_, added->line, added->column, "",
                           fmt::format("nested deeper than {} levels", kDeepest), ""});
      return false;
    }
    open_.push_back(added);
    return true;
  }

  bool close() {
    next_token();
    open_.pop_back();
    return true;
  }

  bool find_duplicates(const JsonValue& object) {
    std::vector<const JsonMember*> sorted;
    sorted.reserve(object.members.size());
    for (const auto& member : object.members) sorted.push_back(&member);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto* a, const auto* b) { return a->key < b->key; });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->key != sorted[i - 1]->key) continue;
      if (problems_.size() >= kMostTextProblems) return false;
      const JsonValue& again = sorted[i]->value;
      problems_.push_back(
          {file_, again.line, again.column, json_pointer(container_path(), sorted[i]->key),
           fmt::format("given twice, first on line {}", sorted[i - 1]->value.line), ""});
    }
    return true;
  }

  // JSON pointer of the innermost open container.
  std::string container_path() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) path = step_into(path, *open_[i]);
    return path;
  }
  // JSON pointer of the value added last.
  std::string current_path() const {
    return open_.empty() ? "" : step_into(container_path(), *open_.back());
  }
  static std::string step_into(const std::string& path, const JsonValue& container) {
    if (container.kind == JsonValue::Kind::array) {
      return json_pointer(path, std::to_string(container.elements.size() - 1));
    }
    return json_pointer(path, container.members.back().key);
  }

  void syntax_problem(std::size_t offset, const std::string& what) {
    const std::size_t at = std::min(offset, text_.size());
    const Place place = moved(Place(), text_, text_.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0, at);
    Diagnostic problem{file_, place.line, place.column, "", "", ""};
    problem.message = json_problem(what);
    problem.hint = syntax_hint(at, problem.message);
    problems_.push_back(std::move(problem));
  }

  std::string syntax_hint(std::size_t at, const std::string& message) const {
    if (at >= text_.size() || message.find("unexpected end of input") != std::string::npos) {
      return text_.find_first_not_of(" \t\r\n") == std::string_view::npos
                 ? "the file is empty"
                 : "the text ends too early: is the file complete?";
    }
    const std::size_t before =
        at == 0 ? std::string_view::npos : text_.find_last_not_of(" \t\r\n", at - 1);
    const char previous = before == std::string_view::npos ? '\0' : text_[before];
    switch (text_[at]) {
      case '}':
      case ']':
        return previous == ',' ? "remove the comma before it" : "";
      case '\'':
        return "strings stand in double quotes";
      case '/':
      case '#':
        return "JSON has no comments";
      case 'N':
      case 'I':
        return "JSON has no NaN and no infinity";
      default:
        return "";
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t most_values_;
  std::size_t cursor_ = 0;  // behind the last token
  std::size_t token_ = 0;   // where that begins
  Place here_;              // place of cursor_
  JsonValue root_;
  std::vector<JsonValue*> open_;  // from the root to the innermost open container
  std::size_t values_ = 0;
  Diagnostics problems_;
};

/// The tree of `parsed`, which has the places of `text`.
Result<JsonValue> built(std::string_view text, std::string_view parsed, const std::string& file,
                        std::size_t most_values) {
  const std::size_t bad = first_not_utf8(text);
  if (bad < text.size()) {
    const Place place = moved(Place(), text, 0, bad);
    return Diagnostic{
        file,
        place.line,
        place.column,
        "",
        fmt::format("not UTF-8 (byte 0x{:02x})", static_cast<unsigned char>(text[bad])),
        "save the file as UTF-8"};
  }
  TreeBuilder builder(text, file, most_values);
  nlohmann::json::sax_parse(parsed.begin(), parsed.end(), &builder);
  return std::move(builder).result();
}

}  // namespace

Result<JsonValue> parse_json(std::string_view text, const std::string& file,
                             std::size_t most_values) {
  return built(text, text, file, most_values);
}

Result<JsonValue> parse_python_json(std::string_view text, const std::string& file) {
  return built(text, without_python_numbers(text), file, kMostJsonValues);
}

}  // namespace shardwise
