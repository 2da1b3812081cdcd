#include "simulator/traces/json_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/simulator/traces/text_source.h"

namespace shardwise::sim {
namespace {

std::string read(const std::string& text, std::size_t piece = 1 << 20) {
  static constexpr std::array kNames = {"{",      "}",      "[",     "]",   "key",
                                        "string", "number", "truth", "null"};
  const ByteSource source = source_of(text, piece);
  JsonStream stream(source);
  std::string told;
  for (;;) {
    const JsonToken token = stream.next();
    if (token == JsonToken::end) return told;
    if (token == JsonToken::wrong) return "wrong";
    told += kNames[static_cast<std::size_t>(token)];
    const bool says =
        token == JsonToken::key || token == JsonToken::string || token == JsonToken::number;
    if (says) told.append("(").append(stream.text()).append(")");
    told += ' ';
  }
}

TEST(JsonStream, TellsTokenByToken) {
  EXPECT_EQ(read(R"( {"a": [1, -2.5e3, true, null], "b" : {}, "c":"d\n\u00e9\ud83d\ude00"} )"),
            "{ key(a) [ number(1) number(-2.5e3) truth null ] key(b) { } key(c) "
            "string(d\n\xC3\xA9\xF0\x9F\x98\x80) } ");
  EXPECT_EQ(read("\xEF\xBB\xBF[]"), "[ ] ");
}

TEST(JsonStream, TellsTheSameFromPiecesOfAnySize) {
  const std::string text =
      R"([{"name": "aten::add", "ts": 1712195495505583.123, "args": {"k\"ey" : "\u20ac"}}, false])";
  const std::string told = read(text);
  for (std::size_t piece = 1; piece < 20; ++piece) EXPECT_EQ(read(text, piece), told) << piece;
}

TEST(JsonStream, RefusesWhatIsNotJson) {
  for (const char* text :
       {"",     " ",       "[",           "{",           "[1",          "[1,",    "[1,]",
        "{,}",  "{\"a\"}", "{\"a\":}",    "{\"a\":1,}",  "[1 2]",       "[01]",   "[1.]",
        "[.5]", "[-]",     "[1e]",        "[+1]",        "[tru]",       "[nul",   "[NaN]",
        "\"a",  "\"\\x\"", "\"\\u12g4\"", "\"\\ud800\"", "\"\\udc00\"", "\"\t\"", "\"\xff\"",
        "[1]]", "[1] 2",   "{1:2}",       "[}",          "{]",          "'a'",    "// a\n1"}) {
    EXPECT_EQ(read(text), "wrong") << text;
  }
}

// Texts made by changing single characters of a good one: nlohmann's parser is the judge. It reads
// the values of numbers too, so those that it calls too large are left out.
TEST(JsonStream, TakesWhatAnotherParserTakes) {
  const std::string good =
      R"({"a": [1, -2.5e3, true, {"b": null}], "c": "d\n\u00e9", "e": "é", "f": []})";
  static constexpr std::string_view kInto = "{}[]\",:\\ 0-1.eE+tfnu\x01\x80\xff";
  std::minstd_rand random(20261122);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (unsigned changes = 1 + random() % 2; changes > 0; --changes) {
      text[random() % text.size()] = kInto[random() % kInto.size()];
    }
    const bool taken = nlohmann::json::accept(text);
    EXPECT_EQ(read(text) != "wrong", taken) << text;
  }
}

TEST(JsonStream, HasThePlaceOfEachToken) {
  const std::string text = "[\n  12,\n\"ab\"]";
  for (const std::size_t piece : {1U, 4U, 100U}) {
    const ByteSource source = source_of(text, piece);
    JsonStream stream(source);
    stream.next();
    EXPECT_EQ(stream.next(), JsonToken::number);
    EXPECT_EQ(stream.line(), 2);
    EXPECT_EQ(stream.column(), 4);
    EXPECT_EQ(stream.next(), JsonToken::string);
    EXPECT_EQ(stream.line(), 3);
    EXPECT_EQ(stream.column(), 4);
  }
}

TEST(JsonStream, SaysWhatItFoundAndWhatShouldBeThere) {
  const std::string text = "{\"a\": ?}";
  const ByteSource source = source_of(text);
  JsonStream stream(source);
  while (stream.next() != JsonToken::wrong) {
  }
  EXPECT_EQ(stream.problem(), "not JSON: '?' where a value should be");
  EXPECT_EQ(stream.column(), 7);
  EXPECT_FALSE(stream.ended_early());
}

}  // namespace
}  // namespace shardwise::sim
