#include "planner/export/shell/shell_variables.h"

#include <algorithm>
#include <utility>

#include "planner/export/shell/shell_braces.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

using ShellWords = std::vector<ShellWord>;
constexpr std::string_view kFieldSeparators = " \t\n";

/// An operation that makes other values of those of a variable.
bool is_change(std::string_view operation) {
  return !operation.empty() && !operation.ends_with('-') && !operation.ends_with('=') &&
         !operation.ends_with('+') && !operation.ends_with('?');
}

/// Whether bash looks for files with such a name.
bool is_pattern(std::string_view text) {
  const std::size_t open = text.find('[');
  const bool one_of = open != std::string_view::npos && text.find(']', open + 2) < text.size();
  return one_of || text.find_first_of("*?") != std::string_view::npos;
}

}  // namespace

bool in_shell_names(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_shell_name(std::string_view text) {
  return !text.empty() && !(text.front() >= '0' && text.front() <= '9') &&
         std::ranges::all_of(text, in_shell_names);
}

bool ends_shell_words(char c) {
  return std::string_view(" \t\n;&|()<>").find(c) != std::string_view::npos;
}

bool is_assignment(std::string_view text) {
  std::string_view name = text.substr(0, text.find('='));
  if (name.size() == text.size()) return false;
  if (name.ends_with('+')) name.remove_suffix(1);
  return is_shell_name(name);
}

bool is_unknown(std::string_view value) {
  return value.find(kUnknownBegin) != std::string_view::npos;
}

bool is_of_slurm(std::string_view name) { return name.starts_with("SLURM_"); }

std::vector<std::string> unknowns_of(std::string_view value) {
  std::vector<std::string> made;
  std::size_t from = 0;
  while ((from = value.find(kUnknownBegin, from)) != std::string_view::npos) {
    const std::size_t end = std::min(value.find(kUnknownEnd, from), value.size());
    made.emplace_back(value.substr(from + 1, end - from - 1));
    from = end;
  }
  return made;
}

std::string unmarked(std::string value) {
  std::erase_if(value, [](char c) { return c == kUnknownBegin || c == kUnknownEnd; });
  return value;
}

void ShellVariables::set(const std::string& name, ShellWord value, bool append) {
  trouble_.charge(value.text.size() + 1, value.line);
  Value& variable = variables_[name];
  if (append && !variable.elements.empty()) {
    variable.elements.front().text += value.text;
  } else if (variable.array && !variable.elements.empty()) {
    variable.elements.front() = std::move(value);
  } else {
    variable.elements = {std::move(value)};
  }
}

void ShellVariables::set_list(const std::string& name, ShellWords values, bool append) {
  Value& variable = variables_[name];
  if (!append) variable.elements.clear();
  variable.array = true;
  std::ranges::move(values, std::back_inserter(variable.elements));
}

const ShellWord* ShellVariables::find(const std::string& name) const {
  const auto at = variables_.find(name);
  return at == variables_.end() || at->second.elements.empty() ? nullptr
                                                               : &at->second.elements.front();
}

std::optional<ShellVariables::Value> ShellVariables::value(const std::string& name) const {
  const auto at = variables_.find(name);
  return at == variables_.end() ? std::nullopt : std::optional(at->second);
}

void ShellVariables::restore(const std::string& name, std::optional<Value> value) {
  if (value) {
    variables_[name] = *std::move(value);
  } else {
    variables_.erase(name);
  }
}

void ShellVariables::keep(const std::set<std::string>& names) {
  std::erase_if(variables_, [&](const auto& each) { return !names.contains(each.first); });
}

std::size_t ShellVariables::size() const {
  std::size_t bytes = 0;
  for (const auto& [name, value] : variables_) {
    bytes += name.size() + 1;
    for (const ShellWord& each : value.elements) bytes += each.text.size() + 1;
  }
  return bytes;
}

ShellWords ShellVariables::expand(const ShellToken& token) {
  Fields fields;
  fields.line = token.line;
  fields.column = token.column;
  const auto several = brace_expanded(token.parts, trouble_, token.line);
  if (!several) expand(token.parts, false, fields);
  for (std::size_t i = 0; several && i < several->size() && !trouble_.stops(); ++i) {
    fields.open = false;
    expand((*several)[i], false, fields);
  }
  return std::move(fields.words);
}

std::string ShellVariables::joined(const std::vector<ShellPart>& parts, int line) {
  Fields fields;
  fields.line = line;
  fields.split = false;
  expand(parts, false, fields);
  std::string text;
  for (const ShellWord& each : fields.words) text += (text.empty() ? "" : " ") + each.text;
  return text;
}

/// \param inside  of ${NAME:-…}, whose text without quotes is split too
void ShellVariables::expand(const std::vector<ShellPart>& parts, bool inside, Fields& fields) {
  for (const ShellPart& part : parts) {
    if (trouble_.stops()) return;
    if (part.kind == ShellPart::Kind::variable) {
      expand_variable(part, fields);
    } else if (part.kind == ShellPart::Kind::text) {
      if (part.quoted) {
        add(fields, part.text, nullptr);
      } else {
        inside ? add_split(fields, part.text, nullptr) : add_open(fields, part.text, nullptr);
      }
    } else {
      std::string value = part.kind == ShellPart::Kind::arithmetic ? sum(part.raw) : "";
      if (value.empty()) value = kUnknownBegin + std::string(part.raw) + kUnknownEnd;
      add(fields, value, nullptr);
    }
  }
}

void ShellVariables::add(Fields& fields, std::string_view text, const ShellWord* from) const {
  trouble_.charge(text.size() + (fields.open ? 0 : 1), fields.line);
  if (!fields.open) {
    fields.words.push_back({"", fields.line, fields.column});
    fields.open = true;
  }
  ShellWord& word = fields.words.back();
  if (word.text.empty() && from != nullptr) {  // the word stands where the variable was set
    word.line = from->line;
    word.column = from->column;
  }
  word.text += text;
  if (from != nullptr && from->pattern) word.pattern = true;
}

void ShellVariables::add_open(Fields& fields, std::string_view text, const ShellWord* from) const {
  add(fields, text, from);
  if (!is_unknown(text) && is_pattern(text)) fields.words.back().pattern = true;
}

/// Cuts at blanks, which a mark of the unknown keeps together.
void ShellVariables::add_split(Fields& fields, std::string_view text, const ShellWord* from) const {
  if (!fields.split) return add(fields, text, from);
  std::size_t at = 0;
  while (at < text.size() && !trouble_.stops()) {
    if (kFieldSeparators.find(text[at]) != std::string_view::npos) {
      fields.open = false;
      at = std::min(text.find_first_not_of(kFieldSeparators, at), text.size());
      continue;
    }
    std::size_t end = at;
    bool known = true;
    while (end < text.size() &&
           (!known || kFieldSeparators.find(text[end]) == std::string_view::npos)) {
      if (text[end] == kUnknownBegin) known = false;
      if (text[end] == kUnknownEnd) known = true;
      ++end;
    }
    add_open(fields, text.substr(at, end - at), from);
    at = end;
  }
}

std::optional<std::vector<const ShellWord*>> ShellVariables::elements(const ShellPart& part) const {
  const auto found = variables_.find(part.text);
  if (found == variables_.end()) return std::nullopt;
  const ShellWords& words = found->second.elements;
  std::vector<const ShellWord*> made;
  if (part.subscript == "@" || part.subscript == "*" || part.text == "@" || part.text == "*") {
    for (const ShellWord& each : words) made.push_back(&each);
    return made;
  }
  std::size_t index = 0;
  if (!part.subscript.empty()) {
    const std::optional<std::int64_t> number = parse_integer(part.subscript);
    if (!number || *number < 0) return std::nullopt;
    index = static_cast<std::size_t>(*number);
  }
  if (index < words.size()) made.push_back(&words[index]);
  return made;
}

void ShellVariables::expand_variable(const ShellPart& part, Fields& fields) {
  auto found = elements(part);
  const std::string_view operation = part.operation;
  const bool present = found && !found->empty();
  const bool filled = present && (!operation.starts_with(':') || found->size() > 1 ||
                                  !found->front()->text.empty());
  if (operation.ends_with('+')) {
    if (filled) return expand(part.value, !part.quoted, fields);
    if (part.quoted) add(fields, "", nullptr);
    return;
  }
  const bool slurm = !found && is_of_slurm(part.text);
  if (operation.size() <= 2 && (operation.ends_with('-') || operation.ends_with('=')) && !filled &&
      !slurm) {
    if (operation.ends_with('=') && part.subscript.empty()) {
      set(part.text, {joined(part.value, fields.line), fields.line, fields.column}, false);
    }
    if (part.quoted) add(fields, "", nullptr);
    return expand(part.value, !part.quoted, fields);
  }
  const auto unknown = [&] {
    add(fields, kUnknownBegin + std::string(part.raw) + kUnknownEnd, nullptr);
  };
  if (!found || (operation.ends_with('?') && !filled)) return unknown();
  std::vector<ShellWord> made;
  if (is_change(operation)) {
    const auto texts = changed(part, *found, fields.line);
    if (!texts) return unknown();
    const ShellWord* place = present ? found->front() : nullptr;
    for (const std::string& text : *texts) {
      trouble_.charge(text.size() + 1, fields.line);
      made.push_back({text, place != nullptr ? place->line : fields.line,
                      place != nullptr ? place->column : fields.column});
    }
    found->clear();
    for (const ShellWord& each : made) found->push_back(&each);
  }
  const bool one = part.subscript == "*" || part.text == "*";
  trouble_.charge(found->size(), fields.line);
  for (std::size_t i = 0; i < found->size() && !trouble_.stops(); ++i) {
    const ShellWord& each = *(*found)[i];
    if (i > 0 && part.quoted && one) {
      add(fields, " ", nullptr);
    } else if (i > 0) {
      fields.open = false;
    }
    part.quoted ? add(fields, each.text, &each) : add_split(fields, each.text, &each);
  }
  const bool all = part.subscript == "@" || part.text == "@";
  if (found->empty() && part.quoted && !all) add(fields, "", nullptr);
}

/// The result of $((…)); "" where something in it is not known.
std::string ShellVariables::sum(std::string_view raw) const {
  const std::optional<std::int64_t> result = number(std::string(raw.substr(3, raw.size() - 5)));
  return result ? std::to_string(*result) : "";
}

}  // namespace shardwise
