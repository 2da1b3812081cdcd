#include "planner/export/configuration/yaml_text.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/export/configuration/yaml_scalar.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kMostYamlBytes = 1'000'000;
constexpr std::size_t kDeepest = 64;
constexpr const char* kMergeKey = "<<";

/// What a copy of a value costs.
struct CopySize {
  std::size_t values = 0;
  std::size_t bytes = 0;  // of texts and keys
  std::size_t depth = 0;  // of containers in containers
};

CopySize size_of(const JsonValue& value) {
  CopySize made{1, value.string.size(), 0};
  const auto add = [&](const JsonValue& inside) {
    const CopySize size = size_of(inside);
    made.values += size.values;
    made.bytes += size.bytes;
    made.depth = std::max(made.depth, size.depth);
  };
  for (const JsonValue& each : value.elements) add(each);
  for (const JsonMember& each : value.members) {
    made.bytes += each.key.size();
    add(each.value);
  }
  const bool container =
      value.kind == JsonValue::Kind::array || value.kind == JsonValue::Kind::object;
  made.depth += container ? 1 : 0;
  return made;
}

/// What yaml-cpp reads, event by event, as values. A problem is thrown as the Diagnostic it is.
class ValueMaker final : public YAML::EventHandler {
 public:
  explicit ValueMaker(std::string file) : file_(std::move(file)) {}

  JsonValue take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark, "a second document", "one configuration in a file");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    put(mark, anchor, "", JsonValue());
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    if (!names_.insert(name).second) fail(mark, fmt::format("&{} stands there twice", shown(name)));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = anchors_.find(anchor);
    if (at == anchors_.end()) {
      fail(mark, "an alias of the value that it stands in", "the value itself");
    }
    if (awaits_key()) fail(mark, "an alias as a key", "the key itself");
    charge(mark, at->second);
    put(mark, YAML::NullAnchor, "", at->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    JsonValue value;
    if (awaits_key()) return key(mark, tag, anchor, text);
    if (tag == "?") {
      const std::string problem = set_plain_scalar(text, value);
      if (!problem.empty()) fail(mark, problem, "a value in quotes, or another one");
    } else {
      value.kind = JsonValue::Kind::string;
      value.string = text;
    }
    put(mark, anchor, tag, std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, tag, JsonValue::Kind::array);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, tag, JsonValue::Kind::object);
  }
  void OnMapEnd() override { close(); }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, std::string message, std::string hint = {}) const {
    throw Diagnostic{file_, mark.line + 1,      mark.column + 1,
                     "",    std::move(message), std::move(hint)};
  }

  /// A container that is being read.
  struct Open {
    JsonValue* value = nullptr;
    YAML::Mark mark = {};
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool keyed = false;   // the key of what comes next was read
    bool merges = false;  // it has a merge key
  };

  bool awaits_key() const {
    return !in_.empty() && in_.back().value->kind == JsonValue::Kind::object && !in_.back().keyed;
  }

  void check(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, fmt::format("the tag {}", shown(tag)), "plain keys and values");
    }
  }

  void key(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
           const std::string& text) {
    check(mark, tag);
    Open& into = in_.back();
    if (into.value->find(text) != nullptr) {
      fail(mark, fmt::format("{} stands there twice", shown(text)));
    }
    if (text == kMergeKey) {
      if (tag != "?") fail(mark, "<< in quotes, which is no key of a configuration", "another key");
      into.merges = true;
    }
    JsonValue value;
    value.kind = JsonValue::Kind::string;
    value.string = text;
    keep(mark, anchor, value);
    into.value->members.push_back({text, JsonValue()});
    into.keyed = true;
  }

  /// Keeps a value for its aliases.
  void keep(const YAML::Mark& mark, YAML::anchor_t anchor, const JsonValue& value) {
    if (anchor == YAML::NullAnchor) return;
    charge(mark, value);
    anchors_[anchor] = value;
  }

  /// Counts a copy, so that a short text cannot fill the memory.
  void charge(const YAML::Mark& mark, const JsonValue& value) {
    const CopySize size = size_of(value);
    if (in_.size() + size.depth > kDeepest) too_deep(mark);
    values_ += size.values;
    copied_ += size.bytes;
    if (values_ > kMostJsonValues || copied_ > kMostYamlBytes) {
      fail(mark, "aliases make more than a configuration has", "fewer, or the values themselves");
    }
  }

  [[noreturn]] void too_deep(const YAML::Mark& mark) const {
    fail(mark, fmt::format("nested deeper than {}", kDeepest));
  }

  /// The value where the next one belongs.
  JsonValue& put(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag,
                 JsonValue value) {
    check(mark, tag);
    if (++values_ > kMostJsonValues) fail(mark, "more values than a configuration has");
    value.line = mark.line + 1;
    value.column = mark.column + 1;
    const bool closed =
        value.kind != JsonValue::Kind::array && value.kind != JsonValue::Kind::object;
    if (closed) keep(mark, anchor, value);
    if (in_.empty()) return root_ = std::move(value);
    if (awaits_key()) fail(mark, "a key that is no word", "key: value");
    Open& into = in_.back();
    if (into.value->kind == JsonValue::Kind::array) {
      return into.value->elements.emplace_back(std::move(value));
    }
    into.keyed = false;
    return into.value->members.back().value = std::move(value);
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag,
            JsonValue::Kind kind) {
    if (in_.size() >= kDeepest) too_deep(mark);
    JsonValue value;
    value.kind = kind;
    // Nothing is added to a container while one inside it is open, so that its place stays.
    Open opened{&put(mark, YAML::NullAnchor, tag, std::move(value)), mark, anchor};
    in_.push_back(opened);
  }

  void close() {
    const Open closed = in_.back();
    if (closed.merges) merge(closed);
    in_.pop_back();
    keep(closed.mark, closed.anchor, *closed.value);
  }

  /// Puts what << names in its place: a key's own value counts before it, and of several mappings
  /// the first that has the key. Source: flatten_mapping() of PyYAML 6.0.3, constructor.py.
  void merge(const Open& into) {
    std::vector<JsonMember>& members = into.value->members;
    const auto at = std::ranges::find(members, kMergeKey, &JsonMember::key);
    const JsonValue named = std::move(at->value);
    members.erase(at);
    const auto is_mapping = [](const JsonValue& each) {
      return each.kind == JsonValue::Kind::object;
    };
    const bool several = named.kind == JsonValue::Kind::array;
    if (!(several ? std::ranges::all_of(named.elements, is_mapping) : is_mapping(named))) {
      fail(into.mark, "a merge key without keys and values", "<<: *NAME of a mapping");
    }
    std::vector<JsonMember> merged;
    std::set<std::string> known;
    for (const JsonMember& each : members) known.insert(each.key);
    const auto take = [&](const JsonValue& from) {
      for (const JsonMember& each : from.members) {
        if (known.insert(each.key).second) merged.push_back(each);
      }
    };
    if (several) {
      for (const JsonValue& each : named.elements) take(each);
    } else {
      take(named);
    }
    members.insert(members.begin(), std::make_move_iterator(merged.begin()),
                   std::make_move_iterator(merged.end()));
  }

  std::string file_;
  JsonValue root_;
  std::vector<Open> in_;  // the containers around what comes next
  std::map<YAML::anchor_t, JsonValue> anchors_;
  std::set<std::string> names_;  // of anchors
  std::size_t values_ = 0;
  std::size_t copied_ = 0;  // bytes of copies
  int documents_ = 0;
};

/// Offset of the first control character, which PyYAML refuses; the size of the text without one.
std::size_t first_control(std::string_view text) {
  const auto at = std::ranges::find_if(text, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20 && c != '\n' && c != '\r' && c != '\t') || code == 0x7f;
  });
  return static_cast<std::size_t>(at - text.begin());
}

}  // namespace

Result<JsonValue> parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kMostYamlBytes) {
    return Diagnostic{file, 0, 0, "", "more than 1 MB, no configuration has so much", ""};
  }
  const auto line_of = [&](std::size_t at) {
    return static_cast<int>(std::ranges::count(text.substr(0, at), '\n')) + 1;
  };
  if (const std::size_t wrong = first_not_utf8(text); wrong != text.size()) {
    return Diagnostic{file, line_of(wrong), 0, "", "not UTF-8", "a text file"};
  }
  if (const std::size_t wrong = first_control(text); wrong != text.size()) {
    return Diagnostic{file,
                      line_of(wrong),
                      0,
                      "",
                      fmt::format("a control character: {}", shown(text.substr(wrong, 1))),
                      "a text file"};
  }
  std::istringstream stream{std::string(text)};
  ValueMaker made(file);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(made)) {
    }
  } catch (const Diagnostic& problem) {
    return problem;
  } catch (const YAML::ParserException& problem) {
    return Diagnostic{file, problem.mark.line + 1, problem.mark.column + 1, "", problem.msg, ""};
  }
  JsonValue root = made.take();
  if (root.kind == JsonValue::Kind::null) {
    root.kind = JsonValue::Kind::object;
    root.line = 1;
  }
  return root;
}

}  // namespace shardwise
