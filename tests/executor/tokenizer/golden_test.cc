// Against Hugging Face's tokenizers (tests/golden/make_tokenizer_golden.py).

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/tokenizer/tokenizer.h"

namespace shardwise::exec {
namespace {

const JsonValue& golden() {
  static const Result<JsonValue> kGolden = read_json("tests/golden/tokenizers.json");
  EXPECT_TRUE(kGolden.ok());
  return *kGolden;
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, value] : golden().find("tokens")->members) result.push_back(name);
  return result;
}

class GoldenTokenizer : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTokenizer, GivesTheTokensOfHuggingFaces) {
  const Result<Tokenizer> tokenizer =
      Tokenizer::read("tests/golden/tokenizers/" + GetParam() + ".json");
  ASSERT_TRUE(tokenizer) << to_string(tokenizer.problems());
  const std::vector<JsonValue>& texts = golden().find("texts")->elements;
  const std::vector<JsonValue>& expected = golden().find("tokens")->find(GetParam())->elements;
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::uint32_t> tokens;
    for (const JsonValue& token : expected[i].elements) {
      tokens.push_back(static_cast<std::uint32_t>(token.integer));
    }
    const auto encoded = tokenizer->encode(texts[i].string);
    ASSERT_TRUE(encoded) << to_string(encoded.problems());
    EXPECT_EQ(*encoded, tokens) << "text " << i << ": " << texts[i].string;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTokenizer, testing::ValuesIn(names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace shardwise::exec
