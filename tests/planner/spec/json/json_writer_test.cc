#include "planner/spec/json/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "planner/spec/json/reader.h"

namespace shardwise {
namespace {

TEST(JsonWriter, WritesMembersInTheOrderGiven) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.report/1");
  json.member("bytes", std::int64_t{80} << 30);
  json.member("fits", true);
  json.begin_array("stages");
  json.element(std::int64_t{0});
  json.begin_object();
  json.end_object();
  json.end_array();
  json.begin_array("none");
  json.end_array();
  json.end_object();
  EXPECT_EQ(json.text(),
            "{\n"
            "  \"schema\": \"shardwise.report/1\",\n"
            "  \"bytes\": 85899345920,\n"
            "  \"fits\": true,\n"
            "  \"stages\": [\n"
            "    0,\n"
            "    {}\n"
            "  ],\n"
            "  \"none\": []\n"
            "}\n");
}

TEST(JsonWriter, ZeroHasNoSign) {
  JsonWriter json;
  json.begin_array();
  json.element(-0.0);
  json.end_array();
  EXPECT_EQ(json.text(), "[\n  0\n]\n");
}

TEST(JsonWriter, NumbersReadBackEqual) {
  for (const double value : {0.1, 1e-12, 989.4e12, 1.0 / 3.0, 5e-324, 1.7976931348623157e308}) {
    JsonWriter json;
    json.begin_object();
    json.member("x", value);
    json.end_object();
    const auto read = parse_json(json.text(), "text");
    ASSERT_TRUE(read.ok()) << json.text();
    EXPECT_EQ(read->find("x")->number, value);
  }
}

TEST(JsonWriter, WhatIsNotANumberIsNull) {
  JsonWriter json;
  json.begin_array();
  json.element(std::numeric_limits<double>::infinity());
  json.end_array();
  EXPECT_EQ(json.text(), "[\n  null\n]\n");
}

TEST(JsonWriter, EscapesWhatJsonForbids) {
  JsonWriter json;
  json.begin_object();
  json.member("text", "a \"quoted\" \\ word\nand a tab\t");
  json.end_object();
  const auto read = parse_json(json.text(), "text");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->find("text")->string, "a \"quoted\" \\ word\nand a tab\t");
}

}  // namespace
}  // namespace shardwise
