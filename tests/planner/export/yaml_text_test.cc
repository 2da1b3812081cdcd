#include "planner/export/yaml_text.h"

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

TEST(YamlText, RefusesWhatIsNoPlainConfigurationAtItsPlace) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"a: &x 1\nb: *x\n", "a.yaml:1:4: an anchor"},
      {"a: 1\na: 2\n", "a.yaml:2:1: a stands there twice"},
      {"a: [1, 2\nb: 3\n", "a.yaml:2:2: end of sequence flow not found"},
      {"a:\n  b: -.inf\n", "a.yaml:2:6: -.inf, which is no value of a setting"},
      {"a: {<<: {b: 1}}\n", "a.yaml:1:5: a merge key"},
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
