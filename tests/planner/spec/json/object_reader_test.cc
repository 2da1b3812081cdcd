#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/nearest.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// One JSON object of "t.json" and what its reader says about it.
class ObjectReaderTest : public testing::Test {
 protected:
  ObjectReader reader(const std::string& text) {
    Result<JsonValue> result = parse_json(text, "t.json");
    EXPECT_TRUE(result.ok()) << to_string(result.problems());
    root_ = *std::move(result);
    return {root_, "t.json", "", problems_};
  }
  std::vector<std::string> said() const {
    std::vector<std::string> lines;
    for (const Diagnostic& problem : problems_) lines.push_back(to_string(problem));
    return lines;
  }

  JsonValue root_;
  Diagnostics problems_;
};

TEST_F(ObjectReaderTest, GivesValuesOfEveryType) {
  ObjectReader r = reader(
      R"({"i": 3, "whole": 8.0, "exp": 2e3, "n": 2.5, "b": true, "s": "x", "c": "two", "o": {}, "a": [1]})");
  EXPECT_EQ(r.integer("i", 0, 10), 3);
  EXPECT_EQ(r.integer("whole", 0, 10), 8);
  EXPECT_EQ(r.integer_or("exp", 1, 0, 10'000), 2000);
  EXPECT_EQ(r.number("n", 0, 10), 2.5);
  EXPECT_EQ(r.number("i", 0, 10), 3.0);
  EXPECT_TRUE(r.boolean("b"));
  EXPECT_EQ(r.string("s"), "x");
  EXPECT_EQ(r.choice("c", {"one", "two"}), 1U);
  EXPECT_EQ(r.object("o"), root_.find("o"));
  EXPECT_EQ(r.array("a"), root_.find("a"));
  r.reject_unknown();
  EXPECT_THAT(said(), IsEmpty());
  EXPECT_TRUE(r.ok());
}

TEST_F(ObjectReaderTest, TakesTheFallbackWhenAbsentOrNull) {
  ObjectReader r = reader(R"({"i": null})");
  EXPECT_FALSE(r.has("i"));
  EXPECT_EQ(r.integer_or("i", 5, 0, 10), 5);
  EXPECT_EQ(r.number_or("n", 0.5, 0, 1), 0.5);
  EXPECT_TRUE(r.boolean_or("b", true));
  EXPECT_EQ(r.string_or("s", "y"), "y");
  EXPECT_EQ(r.choice_or("c", 1, {"one", "two"}), 1U);
  EXPECT_EQ(r.object("o", false), nullptr);
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(ObjectReaderTest, GathersEveryProblemOfTheFile) {
  ObjectReader r = reader("{\"i\": \"8\",\n\"n\": true, \"b\": 1,\n\"s\": [], \"z\": null}");
  EXPECT_EQ(r.integer("i", 1, 10), 1);
  EXPECT_EQ(r.number("n", 0, 1), 0);
  EXPECT_FALSE(r.boolean("b"));
  EXPECT_EQ(r.string("s"), "");
  EXPECT_EQ(r.integer("z", 0, 1), 0);
  EXPECT_EQ(r.integer("missing", 2, 3), 2);
  EXPECT_THAT(
      said(),
      ElementsAre("t.json:1:7: /i: expected an integer, found \"8\"\n    use 1 to 10",
                  "t.json:2:6: /n: expected a number, found true\n    use 0 to 1",
                  "t.json:2:17: /b: expected true or false, found 1",
                  "t.json:3:6: /s: expected a string, found an array",
                  "t.json:3:15: /z: null, but a value is needed", "t.json:1:1: /missing: missing"));
  EXPECT_FALSE(r.ok());
}

TEST_F(ObjectReaderTest, ChecksRangesAndSaysWhatWouldBeRight) {
  ObjectReader r =
      reader(R"({"low": 0, "high": 11, "n": -0.5, "half": 1.5, "vast": 1e300, "inexact": 1e18})");
  EXPECT_EQ(r.integer("low", 1, std::numeric_limits<std::int64_t>::max()), 1);
  EXPECT_EQ(r.integer("high", 1, 10), 1);
  EXPECT_EQ(r.number("n", 0, 1), 0);
  EXPECT_EQ(r.integer("half", 0, 10), 0);
  EXPECT_EQ(r.integer("vast", 0, 10), 0);
  EXPECT_EQ(r.integer("inexact", 0, std::numeric_limits<std::int64_t>::max()), 0);
  EXPECT_THAT(said(),
              ElementsAre("t.json:1:9: /low: 0 is too small\n    use 1 or more",
                          "t.json:1:20: /high: 11 is too large\n    use 1 to 10",
                          "t.json:1:29: /n: -0.5 is too small\n    use 0 to 1",
                          "t.json:1:43: /half: expected an integer, found 1.5\n    use 0 to 10",
                          "t.json:1:56: /vast: 1e+300 is too large\n    use 0 to 10",
                          "t.json:1:74: /inexact: 1e+18 is too large to be exact\n"
                          "    write it without a fraction or exponent"));
}

TEST_F(ObjectReaderTest, SuggestsTheChoiceThatWasMeant) {
  ObjectReader r = reader(R"({"a": "bf61", "b": "int4"})");
  r.choice("a", {"fp32", "bf16", "fp8"});
  r.choice("b", {"fp32", "bf16", "fp8"});
  EXPECT_THAT(
      said(),
      ElementsAre("t.json:1:7: /a: \"bf61\" is not one of the choices\n    did you mean bf16?",
                  "t.json:1:20: /b: \"int4\" is not one of the choices\n"
                  "    use fp32, bf16 or fp8"));
}

TEST_F(ObjectReaderTest, RejectsUnknownKeysWithTheNearestKnownOne) {
  ObjectReader r = reader(R"({"vocab_szie": 3, "colour": 1})");
  EXPECT_FALSE(r.has("vocab_size"));
  r.reject_unknown();
  EXPECT_THAT(said(),
              ElementsAre("t.json:1:16: /vocab_szie: unknown field\n    did you mean vocab_size?",
                          "t.json:1:29: /colour: unknown field"));
}

TEST_F(ObjectReaderTest, RejectsSlipsOfAbsentKeysOnly) {
  ObjectReader r = reader(R"({"hidden_sizes": 3, "n_head": 2, "n_heads": 2, "colour": 1})");
  EXPECT_FALSE(r.has("hidden_size"));
  EXPECT_TRUE(r.has("n_head"));
  EXPECT_FALSE(r.has("co1our1"));  // two letters away
  r.reject_slips();
  EXPECT_THAT(said(), ElementsAre("t.json:1:18: /hidden_sizes: unknown, and hidden_size is absent\n"
                                  "    did you mean hidden_size? if not, take the key out"));
}

TEST_F(ObjectReaderTest, NamesNestedValuesByTheirPointer) {
  ObjectReader r = reader(R"({"links": [{"gbps": 1}, 7], "o": {"x": "y"}})");
  const JsonValue* links = r.array("links");
  for (std::size_t i = 0; i < links->elements.size(); ++i) {
    ObjectReader link = r.nested("links", i, links->elements[i]);
    link.reject_unknown();
    link.integer("a", 0, 1);
  }
  r.nested("o", *r.object("o")).integer("x", 0, 1);
  EXPECT_THAT(
      said(),
      ElementsAre("t.json:1:21: /links/0/gbps: unknown field", "t.json:1:12: /links/0/a: missing",
                  "t.json:1:25: /links/1: expected an object, found 7",
                  "t.json:1:40: /o/x: expected an integer, found \"y\"\n    use 0 to 1"));
  EXPECT_FALSE(r.ok());
}

TEST_F(ObjectReaderTest, ChecksTheSchema) {
  reader(R"({"schema": "shardwise.plan/1"})").require_schema("shardwise.plan/1");
  EXPECT_THAT(said(), IsEmpty());
  reader(R"({"schema": "shardwise.plan/2"})").require_schema("shardwise.plan/1");
  reader("{}").require_schema("shardwise.plan/1");
  EXPECT_THAT(said(), ElementsAre("t.json:1:12: /schema: expected \"shardwise.plan/1\", found "
                                  "\"shardwise.plan/2\"",
                                  "t.json:1:1: /schema: missing\n"
                                  "    begin the file with \"schema\": \"shardwise.plan/1\""));
}

TEST_F(ObjectReaderTest, IsSilentAboutAFileOfAnotherKind) {
  ObjectReader r = reader(R"({"schema": "shardwise.gpu/1", "x": 1})");
  r.require_schema("shardwise.plan/1");
  EXPECT_EQ(r.integer("tp", 1, 8), 1);
  r.reject_unknown();
  EXPECT_THAT(problems_, SizeIs(1));
  EXPECT_FALSE(r.ok());
}

TEST_F(ObjectReaderTest, StopsAtAHundredProblemsAndIsNotOkAfterwards) {
  std::string text = "{\"x\": 1";
  for (int i = 0; i < 300; ++i) text += ", \"k" + std::to_string(i) + "\": 1";
  ObjectReader r = reader(text + "}");
  r.reject_unknown();
  EXPECT_THAT(problems_, SizeIs(100));
  ObjectReader later(root_, "t.json", "", problems_);
  EXPECT_EQ(later.string("x"), "");
  EXPECT_FALSE(later.ok());
}

TEST(Nearest, FindsSlipsOfThePenOnly) {
  const std::vector<std::string> known = {"hidden_size", "num_hidden_layers", "vocab_size", "tp"};
  EXPECT_EQ(nearest("hiden_size", known), "hidden_size");
  EXPECT_EQ(nearest("num_hidden_layer", known), "num_hidden_layers");
  EXPECT_EQ(nearest("vocab_szie", known), "vocab_size");  // a swap is one slip
  EXPECT_EQ(nearest("pt", known), "tp");
  EXPECT_EQ(nearest("colour", known), std::nullopt);
  EXPECT_EQ(nearest("", known), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

}  // namespace
}  // namespace shardwise
