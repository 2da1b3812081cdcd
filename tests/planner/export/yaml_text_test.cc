#include "planner/export/configuration/yaml_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

TEST(YamlText, HasTheTypesThatPyYamlGives) {
  const Result<JsonValue> read = parse_yaml(
      "---\n"
      "one: 1   # a comment\n"
      "list: {flow: [2.5, 5e8, 5.0e+8, ~]}\n"
      "words:\n"
      "- True\n"
      "- no\n"
      "- 'no'\n"
      "- '# text'\n"
      "text: |\n"
      "  two\n"
      "  lines\n"
      "nothing:\n",
      "a.yaml");
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  EXPECT_EQ(read->find("one")->integer, 1);
  const std::vector<JsonValue>& numbers = read->find("list")->find("flow")->elements;
  ASSERT_EQ(numbers.size(), 4U);
  EXPECT_EQ(numbers[0].number, 2.5);
  EXPECT_EQ(numbers[1].string, "5e8");
  EXPECT_EQ(numbers[2].number, 5e8);
  EXPECT_EQ(numbers[3].kind, JsonValue::Kind::null);
  const std::vector<JsonValue>& words = read->find("words")->elements;
  ASSERT_EQ(words.size(), 4U);
  EXPECT_TRUE(words[0].boolean);
  EXPECT_EQ(words[1].kind, JsonValue::Kind::boolean);
  EXPECT_EQ(words[2].string, "no");
  EXPECT_EQ(words[3].string, "# text");
  EXPECT_EQ(read->find("text")->string, "two\nlines\n");
  EXPECT_EQ(read->find("nothing")->kind, JsonValue::Kind::null);
  EXPECT_EQ(read->find("words")->line, 5);
  EXPECT_EQ(words[1].line, 6);
  EXPECT_EQ(words[1].column, 3);
}

TEST(YamlText, OfNothingIsAnObjectWithoutMembers) {
  for (const char* text : {"", "# only a comment\n", "---\n"}) {
    const Result<JsonValue> read = parse_yaml(text, "a.yaml");
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(read->kind, JsonValue::Kind::object) << text;
    EXPECT_TRUE(read->members.empty()) << text;
  }
}

/// A value as JSON.
std::string text_of_value(const JsonValue& value) {
  std::string made;
  switch (value.kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::array:
      for (const JsonValue& each : value.elements) {
        made += (made.empty() ? "" : ",") + text_of_value(each);
      }
      return "[" + made + "]";
    case JsonValue::Kind::object:
      for (const JsonMember& each : value.members) {
        made += (made.empty() ? "" : ",") + each.key + ":" + text_of_value(each.value);
      }
      return "{" + made + "}";
    default:
      return value.kind == JsonValue::Kind::string ? value.string : fmt::format("{}", value.number);
  }
}

// What yaml.safe_load() of PyYAML 6.0.3 makes of the same texts.
TEST(YamlText, HasWhatAliasesAndMergeKeysName) {
  const std::string anchors = "base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\n";
  const std::vector<std::pair<std::string, std::string>> all = {
      {"n: &n 8\nm: *n\nl: [*n, &w [no], *w]\n", "{n:8,m:8,l:[8,[false],[false]]}"},
      {"e: &e\nf: *e\n", "{e:null,f:null}"},
      {"&k a: 1\nb: *k\n", "{a:1,b:a}"},
      {"&r\na: 1\n", "{a:1}"},
      {anchors + "a: *b\n", "{base:{x:1,y:2},other:{y:3,z:4},a:{x:1,y:2}}"},
      {anchors + "a: {<<: *b, y: 5}\n", "{base:{x:1,y:2},other:{y:3,z:4},a:{x:1,y:5}}"},
      {anchors + "a: {y: 5, <<: *b}\n", "{base:{x:1,y:2},other:{y:3,z:4},a:{x:1,y:5}}"},
      {anchors + "a: {<<: [*b, *o], w: 6}\n",
       "{base:{x:1,y:2},other:{y:3,z:4},a:{x:1,y:2,z:4,w:6}}"},
      {anchors + "a: {<<: [*o, *b]}\n", "{base:{x:1,y:2},other:{y:3,z:4},a:{y:3,z:4,x:1}}"},
      {"a: &a {<<: {q: 1}}\nb: {<<: *a}\n<<: *a\n", "{q:1,a:{q:1},b:{q:1}}"},
      {"a: {<<: []}\n", "{a:{}}"}};
  for (const auto& [text, made] : all) {
    const Result<JsonValue> read = parse_yaml(text, "a.yaml");
    ASSERT_TRUE(read.ok()) << text << to_string(read.problems());
    EXPECT_EQ(text_of_value(*read), made) << text;
  }
}

TEST(YamlText, HasAnAliasWhereItStandsAndMergedKeysWhereTheyStand) {
  const Result<JsonValue> read =
      parse_yaml("base: &b\n  x: 1\nlist: [*b]\nown:\n  <<: *b\n  y: 2\n", "a.yaml");
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  const JsonValue& alias = read->find("list")->elements.front();
  EXPECT_EQ(alias.line, 3);
  EXPECT_EQ(alias.column, 8);
  EXPECT_EQ(alias.find("x")->line, 2);
  EXPECT_EQ(read->find("own")->find("x")->line, 2);
  EXPECT_EQ(read->find("own")->find("y")->line, 6);
}

/// Aliases of aliases, each ten times as large as the last.
std::string many_aliases(const std::string& first, int levels) {
  std::string text = "a0: &a0 " + first + "\n";
  for (int i = 1; i < levels; ++i) {
    text += fmt::format("a{0}: &a{0} [", i);
    for (int k = 0; k < 10; ++k) text += fmt::format("{}*a{}", k > 0 ? ", " : "", i - 1);
    text += "]\n";
  }
  return text;
}

TEST(YamlText, RefusesWhatIsNoPlainConfigurationAtItsPlace) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"a: *x\n", "a.yaml:1:4: the referenced anchor is not defined"},
      {"a: &x [*x]\n", "a.yaml:1:8: an alias of the value that it stands in"},
      {"a: &x 1\n? *x\n: 2\n", "a.yaml:2:3: an alias as a key"},
      {"a: &x 1\nb: &x 2\n", "a.yaml:2:4: &x stands there twice"},
      {"a: {<<: 1}\n", "a.yaml:1:4: a merge key without keys and values"},
      {"<<: [1]\n", "a.yaml:1:1: a merge key without keys and values"},
      {"a: {\"<<\": {b: 1}}\n", "a.yaml:1:5: << in quotes"},
      {"a: {<<: {b: 1}, <<: {c: 1}}\n", "a.yaml:1:17: << stands there twice"},
      {many_aliases("1", 20), "aliases make more than a configuration has"},
      {many_aliases(std::string(100'000, 'x'), 3), "aliases make more than a configuration has"},
      {many_aliases("1", 3) + "b: " + std::string(62, '[') + "*a2" + std::string(62, ']'),
       "nested deeper than 64"},
      {"a: 1\na: 2\n", "a.yaml:2:1: a stands there twice"},
      {"a: [1, 2\nb: 3\n", "a.yaml:2:2: end of sequence flow not found"},
      {"a:\n  b: -.inf\n", "a.yaml:2:6: -.inf, which is no value of a setting"},
      {"a: !!python/object:x 1\n", "a.yaml:1:4: the tag"},
      {"? [a]\n: b\n", "a.yaml:1:3: a key that is no word"},
      {"a: 1\n---\nb: 2\n", "a.yaml:2:1: a second document"},
      {"a: 1\n  b: 2\n", "a.yaml:2:4: illegal map value"},
      {"a: \xff\n", "a.yaml:1: not UTF-8"},
      {std::string("a: 1\nb\0c: 2\n", 12), "a.yaml:2: a control character: \\u0000"},
      {"a: \x1b[31m\n", "a.yaml:1: a control character: \\u001b"},
      {"a: " + std::string(100, '[') + std::string(100, ']'), "nested deeper than 64"},
      {std::string(100'000, '['), "a.yaml:1:"},
      {"a: " + std::string(1'000'001, 'x'), "more than 1 MB"}};
  for (const auto& [text, said] : all) {
    const Result<JsonValue> read = parse_yaml(text, "a.yaml");
    ASSERT_FALSE(read.ok()) << said;
    EXPECT_THAT(to_string(read.problems()), testing::HasSubstr(said));
  }
}

}  // namespace
}  // namespace shardwise
