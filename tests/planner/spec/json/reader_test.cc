#include "planner/spec/json/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "planner/spec/json/python_json.h"
#include "planner/spec/text/error.h"

namespace shardwise {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

JsonValue parsed(std::string_view text) {
  Result<JsonValue> result = parse_json(text, "test.json");
  EXPECT_TRUE(result.ok()) << to_string(result.problems());
  return result.ok() ? *result : JsonValue();
}

/// Everything said about a text that must not parse.
std::string refused_text(std::string_view text) {
  const Result<JsonValue> result = parse_json(text, "test.json");
  return result.ok() ? "accepted" : to_string(result.problems());
}

TEST(ParseJson, KeepsEveryKindOfValue) {
  const JsonValue root = parsed(
      R"({"a": null, "b": true, "c": -7, "d": 2.5, "e": "x\"\u00e9", "f": [1, []], "g": {}})");
  EXPECT_EQ(root.find("a")->kind, JsonValue::Kind::null);
  EXPECT_TRUE(root.find("b")->boolean);
  EXPECT_EQ(root.find("c")->integer, -7);
  EXPECT_EQ(root.find("c")->number, -7.0);
  EXPECT_EQ(root.find("d")->number, 2.5);
  EXPECT_EQ(root.find("e")->string, "x\"é");
  EXPECT_EQ(root.find("f")->elements.size(), 2U);
  EXPECT_EQ(root.find("g")->kind, JsonValue::Kind::object);
  EXPECT_EQ(root.find("h"), nullptr);
}

TEST(ParseJson, KeepsTheExtremeIntegersExactly) {
  const JsonValue root = parsed("[9223372036854775807, -9223372036854775808]");
  EXPECT_EQ(root.elements[0].integer, INT64_MAX);
  EXPECT_EQ(root.elements[1].integer, INT64_MIN);
}

TEST(ParseJson, GivesLineAndColumnOfEveryValue) {
  const JsonValue root = parsed(
      "{\n"
      "  \"name\": \"a, b: {c}\\\" é\", \"n\": 12,\n"
      "  \"é\": [ -1.5e3 ,\n"
      "\ttrue]\r\n"
      "}");
  EXPECT_EQ(root.line, 1);
  EXPECT_EQ(root.column, 1);
  EXPECT_EQ(root.find("name")->line, 2);
  EXPECT_EQ(root.find("name")->column, 11);
  EXPECT_EQ(root.find("n")->line, 2);
  EXPECT_EQ(root.find("n")->column, 33);  // é is one column
  const JsonValue& list = *root.find("é");
  EXPECT_EQ(list.line, 3);
  EXPECT_EQ(list.column, 8);
  EXPECT_EQ(list.elements[0].column, 10);
  EXPECT_EQ(list.elements[1].line, 4);
  EXPECT_EQ(list.elements[1].column, 2);
}

// Places found by walking the text agree with the places the text was written at, whatever stands
// between the values.
TEST(ParseJson, PlacesMatchTheTextForRandomSpacing) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string text;
    int line = 1;
    int column = 1;
    std::vector<std::pair<int, int>> places;
    const auto put = [&](const std::string& piece) {
      for (const char c : piece) {
        text += c;
        line += c == '\n' ? 1 : 0;
        column = c == '\n' ? 1 : column + 1;
      }
    };
    const auto space = [&] {
      static const std::vector<std::string> kSpaces = {"", " ", "\n", "\t", "\r\n", "  \n "};
      put(kSpaces[random() % kSpaces.size()]);
    };
    static const std::vector<std::string> kValues = {"null",     "true",          "false", "0",
                                                     "-12",      "3.5",           "1e-7",  "\"\"",
                                                     "\"\\\\\"", "\"a,]\\\"}:\"", "[]",    "{}"};
    space();
    put("[");
    for (int i = 0; i < 12; ++i) {
      if (i > 0) put(",");
      space();
      places.emplace_back(line, column);
      put(kValues[random() % kValues.size()]);
      space();
    }
    put("]");
    const JsonValue root = parsed(text);
    ASSERT_EQ(root.elements.size(), places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_EQ(root.elements[i].line, places[i].first) << text;
      EXPECT_EQ(root.elements[i].column, places[i].second) << text;
    }
  }
}

TEST(ParseJson, SkipsAByteOrderMark) {
  const JsonValue root = parsed("\xEF\xBB\xBF[7]");
  EXPECT_EQ(root.column, 1);
  EXPECT_EQ(root.elements[0].column, 2);
}

TEST(ParseJson, SaysWhereATextIsNotJson) {
  EXPECT_EQ(refused_text("{\"a\": 1,\n}"),
            "test.json:2:1: not JSON while parsing object key: unexpected '}', expected string "
            "literal\n    remove the comma before it\n1 problem, nothing was run\n");
  EXPECT_THAT(refused_text("{'a': 1}"), HasSubstr("strings stand in double quotes"));
  EXPECT_THAT(refused_text("[1] // one"), HasSubstr("JSON has no comments"));
  EXPECT_THAT(refused_text("[NaN]"), HasSubstr("JSON has no NaN"));
  EXPECT_THAT(refused_text("[-Infinity]"), HasSubstr("JSON has no NaN and no infinity"));
  EXPECT_THAT(refused_text("[1] [2]"),
              HasSubstr("test.json:1:5: not JSON while parsing value: unexpected '['"));
}

TEST(ParseJson, SaysThatATextIsTruncatedOrEmpty) {
  EXPECT_THAT(refused_text(R"({"a": [1, 2)"), HasSubstr("is the file complete?"));
  EXPECT_THAT(refused_text(R"({"a": "b)"), HasSubstr("is the file complete?"));
  EXPECT_THAT(refused_text(""), HasSubstr("the file is empty"));
  EXPECT_THAT(refused_text(" \n"), HasSubstr("the file is empty"));
}

TEST(ParseJson, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(refused_text("{\"a\":\n \"\xC3\x28\"}"),
            "test.json:2:3: not UTF-8 (byte 0xc3)\n    save the file as UTF-8\n"
            "1 problem, nothing was run\n");
  EXPECT_THAT(refused_text(std::string("\xFF\xFE{\0}\0", 6)),
              HasSubstr(":1:1: not UTF-8 (byte 0xff)"));
}

TEST(ParseJson, RefusesNulBytesAndControlCharacters) {
  EXPECT_THAT(refused_text(std::string("[1,\0 2]", 7)), HasSubstr("test.json:1:4: not JSON"));
  EXPECT_THAT(refused_text("[\"a\nb\"]"), HasSubstr("not JSON"));
}

TEST(ParseJson, NamesEveryDuplicateKeyWithBothLines) {
  EXPECT_EQ(refused_text("{\"a\": {\"x\": 1,\n\"x\": 2,\n\"x\": 3},\n\"b~/\": 1,\n\"b~/\": 2}"),
            "test.json:2:6: /a/x: given twice, first on line 1\n"
            "test.json:3:6: /a/x: given twice, first on line 2\n"
            "test.json:5:8: /b~0~1: given twice, first on line 4\n"
            "3 problems, nothing was run\n");
}

TEST(ParseJson, RefusesNumbersThatDoNotFit) {
  EXPECT_THAT(refused_text("{\"n\": [9223372036854775808]}"),
              HasSubstr("test.json:1:8: /n/0: 9223372036854775808 does not fit 64 bits"));
  EXPECT_THAT(refused_text("[-9223372036854775809]"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(refused_text("[" + std::string(300, '9') + "]"), HasSubstr("… does not fit 64 bits"));
  EXPECT_THAT(refused_text("[1e999]"), HasSubstr("test.json:1:2: /0: 1e999 is too large"));
}

TEST(ParseJson, AllowsSixtyFourLevelsAndNoMore) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(parse_json(nested(64), "test.json").ok());
  EXPECT_THAT(refused_text(nested(65)), HasSubstr("test.json:1:65: nested deeper than 64 levels"));
  EXPECT_THAT(refused_text(std::string(5'000'000, '[')), HasSubstr("nested deeper than 64 levels"));
}

TEST(ParseJson, RefusesMoreThanAMillionValues) {
  std::string text = "[0";
  for (int i = 0; i < 1'000'000; ++i) text += ",0";
  EXPECT_THAT(refused_text(text + "]"), HasSubstr("more than 1000000 values"));
}

class ReadFile : public testing::Test {
 protected:
  ~ReadFile() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& text) {
    const std::filesystem::path path = folder_ / "a.json";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path folder_ = [] {
    std::string name = (std::filesystem::temp_directory_path() / "shardwise-XXXXXX").string();
    return std::filesystem::path(mkdtemp(name.data()));
  }();
};

TEST_F(ReadFile, GivesTheWholeText) {
  const std::string text = std::string(200'000, 'x') + '\0' + "end";
  EXPECT_EQ(*read_file(write(text)), text);
}

TEST_F(ReadFile, ReportsAMissingFileAndAFolderAsProblems) {
  EXPECT_EQ(to_string(read_file("no/such.json").problems().front()), "no/such.json: no such file");
  EXPECT_THAT(to_string(read_file(folder_).problems().front()), EndsWith(": a folder, not a file"));
}

TEST_F(ReadFile, RefusesMoreThanAHundredMegabytes) {
  const std::filesystem::path path = write("");
  std::filesystem::resize_file(path, 100'000'000);
  EXPECT_TRUE(read_file(path).ok());
  std::filesystem::resize_file(path, 100'000'001);
  EXPECT_EQ(read_file(path).problems().front().message, "larger than 100 MB");
  EXPECT_EQ(read_file("/dev/zero").problems().front().message, "a device, not a regular file");
}

TEST_F(ReadFile, NamesTheFileOfASyntaxError) {
  const std::filesystem::path path = write("{");
  EXPECT_EQ(read_json(path).problems().front().file, path.string());
}

// json.dumps writes these three, transformers' save_pretrained among others.
TEST(ParsePythonJson, TakesPythonsNumbers) {
  const std::string text =
      "{\"limit\": [0.0, Infinity],\n \"low\": -Infinity, \"none\": NaN,\n"
      " \"word\": \"NaN, Infinity\", \"last\": 3}";
  const Result<JsonValue> read = parse_python_json(text, "config.json");
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  EXPECT_EQ(read->find("limit")->elements.at(1).number, std::numeric_limits<double>::infinity());
  EXPECT_EQ(read->find("low")->number, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(read->find("none")->number));
  EXPECT_EQ(read->find("word")->string, "NaN, Infinity");
  EXPECT_EQ(read->find("last")->integer, 3);
  EXPECT_EQ(read->find("none")->line, 2);
  EXPECT_EQ(read->find("none")->column, 28);
}

TEST(ParsePythonJson, RefusesThemWhereANumberCounts) {
  const Result<JsonValue> read =
      parse_python_json("{\"a\": Infinity, \"b\": NaN, \"c\": -Infinity}", "config.json");
  ASSERT_TRUE(read.ok());
  Diagnostics problems;
  ObjectReader reader(*read, "config.json", "", problems);
  reader.integer("a", 1, 10);
  reader.number("b", 0, 10);
  reader.number("c", 0, 10);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].message, "Infinity is too large");
  EXPECT_EQ(problems[1].message, "expected a number, found NaN");
  EXPECT_EQ(problems[2].message, "-Infinity is too small");
}

TEST(ParsePythonJson, StillRefusesWhatIsNoJson) {
  for (const char* text : {"{\"a\": Nan}", "{\"a\": Infinity7}", "{\"a\": nan}", "{NaN: 1}"}) {
    EXPECT_FALSE(parse_python_json(text, "config.json").ok()) << text;
  }
}

}  // namespace
}  // namespace shardwise
