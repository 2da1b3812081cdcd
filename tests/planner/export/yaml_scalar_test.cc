#include "planner/export/configuration/yaml_scalar.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

/// "integer 15", or "refused".
std::string read_scalar(const std::string& text) {
  JsonValue value;
  if (!set_plain_scalar(text, value).empty()) return "refused";
  switch (value.kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return value.boolean ? "boolean true" : "boolean false";
    case JsonValue::Kind::integer:
      return fmt::format("integer {}", value.integer);
    case JsonValue::Kind::number:
      return fmt::format("number {:.12g}", value.number);
    default:
      return value.string == text ? "string" : "string " + value.string;
  }
}

// The kinds and values are those of PyYAML 6.0.3: yaml.safe_load("a: " + scalar)["a"], where an
// integer beyond 64 bits is a number, a date a string, and infinity, NaN and what safe_load raises
// an error for are refused.
TEST(YamlScalar, HasTheKindThatPyYamlGives) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"1", "integer 1"},
      {"-1", "integer -1"},
      {"+1", "integer 1"},
      {"0", "integer 0"},
      {"-0", "integer 0"},
      {"00", "integer 0"},
      {"017", "integer 15"},
      {"-017", "integer -15"},
      {"018", "string"},
      {"08", "string"},
      {"0o17", "string"},
      {"0x1F", "integer 31"},
      {"0xff", "integer 255"},
      {"-0x1F", "integer -31"},
      {"0x", "string"},
      {"0x_", "refused"},
      {"0b101", "integer 5"},
      {"0b2", "string"},
      {"1_000", "integer 1000"},
      {"1__0", "integer 10"},
      {"_1", "string"},
      {"1_", "integer 1"},
      {"9223372036854775807", "integer 9223372036854775807"},
      {"9223372036854775808", "number 9.22337203685e+18"},
      {"1:30", "integer 90"},
      {"190:20:30", "integer 685230"},
      {"1:60", "string"},
      {"0:30", "string"},
      {"1:30.5", "number 90.5"},
      {"1.", "number 1"},
      {".5", "number 0.5"},
      {"-.5", "string"},
      {"-0.5", "number -0.5"},
      {"1.5", "number 1.5"},
      {"1_0.5", "number 10.5"},
      {"1e3", "string"},
      {"1.e3", "string"},
      {"1.0e3", "string"},
      {"1.0e+3", "number 1000"},
      {"1.e+3", "number 1000"},
      {"1.5E-3", "number 0.0015"},
      {"1e-5", "string"},
      {"3.0e-4", "number 0.0003"},
      {".5e+2", "number 50"},
      {".inf", "refused"},
      {"-.inf", "refused"},
      {"+.Inf", "refused"},
      {".nan", "refused"},
      {"inf", "string"},
      {"NaN", "string"},
      {"yes", "boolean true"},
      {"Yes", "boolean true"},
      {"yES", "string"},
      {"no", "boolean false"},
      {"on", "boolean true"},
      {"off", "boolean false"},
      {"y", "string"},
      {"n", "string"},
      {"true", "boolean true"},
      {"TRUE", "boolean true"},
      {"False", "boolean false"},
      {"~", "null"},
      {"null", "null"},
      {"Null", "null"},
      {"nULL", "string"},
      {"None", "string"},
      {"2024-01-01", "string"},
      {"2024-1-1", "string"},
      {"12:30:45", "integer 45045"},
      {"=", "refused"},
      {"<<", "refused"},
      {"1.2.3", "string"},
      {".", "string"},
      {"2024-01-01 10:00:00", "string"},
  };
  for (const auto& [text, expected] : all) EXPECT_EQ(read_scalar(text), expected) << text;
  EXPECT_EQ(read_scalar(""), "null");
}

TEST(YamlScalar, SaysWhatIsWrong) {
  JsonValue value;
  EXPECT_EQ(set_plain_scalar(".inf", value), ".inf, which is no value of a setting");
  EXPECT_EQ(set_plain_scalar("0x_", value), "0x_ is no number");
  EXPECT_EQ(set_plain_scalar("1.0e+999", value), "1.0e+999: too large");
}

}  // namespace
}  // namespace shardwise
