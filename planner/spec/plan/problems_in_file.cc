#include "planner/spec/plan/problems_in_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

bool of_a_flag(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

/// "--micro-batch-size" is "micro_batch_size".
std::string key_of(std::string_view flag) {
  std::string key(flag.substr(2));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// "use --fp32-gradients=false" is "use fp32_gradients false".
std::string in_keys(const std::string& text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 2, "--") != 0) {
      made += text[at++];
      continue;
    }
    std::size_t end = at + 2;
    while (end < text.size() && of_a_flag(text[end])) ++end;
    made += key_of(std::string_view(text).substr(at, end - at));
    at = end;
    if (at < text.size() && text[at] == '=') {
      made += ' ';
      ++at;
    }
  }
  return made;
}

/// Pointer to the key of a flag; an absent one would be in the layout or in the job.
std::string pointer_of(const JsonValue& root, const std::string& key) {
  for (const std::string_view section : {"layout", "job"}) {
    const JsonValue* object = root.find(section);
    if (object != nullptr && object->find(key) != nullptr) {
      return json_pointer(json_pointer("", section), key);
    }
  }
  if (root.find(key) != nullptr) return json_pointer("", key);
  const bool of_layout = std::ranges::count(layout_keys(), key) > 0;
  return json_pointer(of_layout ? "/layout" : "/job", key);
}

/// The value under `key`; of an array, the element of that number.
const JsonValue* member(const JsonValue& value, const std::string& key) {
  if (value.kind != JsonValue::Kind::array) return value.find(key);
  std::size_t index = 0;
  const char* end = key.data() + key.size();
  const auto [at, bad] = std::from_chars(key.data(), end, index);
  const bool there = bad == std::errc() && at == end && index < value.elements.size();
  return there ? &value.elements[index] : nullptr;
}

/// The value at `pointer`, or the innermost of those around it. No key of ours has ~ or /.
const JsonValue& innermost_value(const JsonValue& root, const std::string& pointer) {
  const JsonValue* value = &root;
  for (std::size_t at = 0; at < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at + 1), pointer.size());
    const JsonValue* next = member(*value, pointer.substr(at + 1, end - at - 1));
    if (next == nullptr) break;
    value = next;
    at = end;
  }
  return *value;
}

}  // namespace

Diagnostics problems_in_file(Diagnostics problems, const JsonValue& root, const std::string& file) {
  for (Diagnostic& each : problems) {
    each.file = file;
    each.message = in_keys(each.message);
    each.hint = in_keys(each.hint);
    if (each.path.starts_with("--")) each.path = pointer_of(root, key_of(each.path));
    const JsonValue& at = innermost_value(root, each.path);
    each.line = at.line;
    each.column = at.column;
  }
  return problems;
}

Diagnostics problems_in_form(Diagnostics problems, const std::string& form) {
  for (Diagnostic& each : problems) {
    if (each.file != "command line") continue;
    each.file = form;
    each.message = in_keys(each.message);
    each.hint = in_keys(each.hint);
    if (each.path.starts_with("--")) each.path = key_of(each.path);
  }
  return problems;
}

}  // namespace shardwise
