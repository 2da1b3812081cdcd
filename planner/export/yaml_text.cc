#include "planner/export/yaml_text.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>
#include <vector>

#include "planner/export/yaml_scalar.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kMostYamlBytes = 1'000'000;
constexpr std::size_t kDeepest = 64;

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
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "an alias: values are read where they stand", "the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    JsonValue value;
    if (awaits_key()) {
      check(mark, anchor, tag);
      if (tag == "?" && text == "<<") fail(mark, "a merge key", "the keys themselves");
      if (in_.back()->find(text) != nullptr)
        fail(mark, fmt::format("{} stands there twice", shown(text)));
      in_.back()->members.push_back({text, JsonValue()});
      keyed_.back() = true;
      return;
    }
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

  bool awaits_key() const {
    return !in_.empty() && in_.back()->kind == JsonValue::Kind::object && !keyed_.back();
  }

  void check(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) const {
    if (anchor != YAML::NullAnchor) {
      fail(mark, "an anchor: values are read where they stand", "the value itself");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, fmt::format("the tag {}", shown(tag)), "plain keys and values");
    }
  }

  /// The value where the next one belongs.
  JsonValue& put(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag,
                 JsonValue value) {
    check(mark, anchor, tag);
    if (++values_ > kMostJsonValues) fail(mark, "more values than a configuration has");
    value.line = mark.line + 1;
    value.column = mark.column + 1;
    if (in_.empty()) return root_ = std::move(value);
    if (awaits_key()) fail(mark, "a key that is no word", "key: value");
    JsonValue& into = *in_.back();
    if (into.kind == JsonValue::Kind::array) return into.elements.emplace_back(std::move(value));
    keyed_.back() = false;
    return into.members.back().value = std::move(value);
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag,
            JsonValue::Kind kind) {
    if (in_.size() >= kDeepest) fail(mark, fmt::format("nested deeper than {}", kDeepest));
    JsonValue value;
    value.kind = kind;
    // Nothing is added to a container while one inside it is open, so that its place stays.
    in_.push_back(&put(mark, anchor, tag, std::move(value)));
    keyed_.push_back(false);
  }

  void close() {
    in_.pop_back();
    keyed_.pop_back();
  }

  std::string file_;
  JsonValue root_;
  std::vector<JsonValue*> in_;  // the containers around what comes next
  std::vector<bool> keyed_;     // whether the key of what comes next was read, for each of them
  std::size_t values_ = 0;
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
