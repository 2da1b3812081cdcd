#include "executor/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwise::exec {
namespace {

using testing::HasSubstr;

Manifest small() {
  Manifest manifest;
  manifest.step = 20;
  manifest.sequence = 160;
  manifest.run = "0123456789abcdef0123456789abcdef";
  manifest.seed = UINT64_MAX;
  manifest.model = "a \"model\"";
  manifest.plan_digest = "ab12";
  manifest.engine = "fsdp2";
  manifest.zero_stage = 3;
  manifest.dp_shard = 2;
  manifest.pp = 4;
  manifest.vpp = 2;
  manifest.optimizer.peak_learning_rate = 0.01;
  manifest.data = {"a.txt", "cd34", 1000, "ef56", 32, 8};
  manifest.tensors = {{"w", {2, 3}}, {"b", {3}}};
  manifest.files = {{"rank-00000.safetensors", 500, 7, {{"w", 0, 4, {1, 2, UINT32_MAX}}}},
                    {"rank-00001.safetensors", 600, 8, {{"w", 4, 2, {}}, {"b", 0, 3, {}}}}};
  return manifest;
}

TEST(Manifest, SaysTheSameWhenItIsReadAgain) {
  const std::string text = to_json(small());
  const Result<Manifest> read = parse_manifest(text, "manifest.json");
  ASSERT_TRUE(read) << to_string(read.problems());
  EXPECT_EQ(to_json(*read), text);
  EXPECT_EQ(read->run, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(read->seed, UINT64_MAX);
  EXPECT_EQ(read->pp, 4);
  EXPECT_EQ(read->vpp, 2);
  EXPECT_EQ(read->data.digest, "ef56");
  EXPECT_EQ(read->data.tokens, 1000);
  EXPECT_EQ(read->tensors, small().tensors);
  EXPECT_EQ(read->files[0].slices[0].crc32[2], UINT32_MAX);
}

// Of versions that had no pipelines.
TEST(Manifest, IsReadWithoutStages) {
  std::string text = to_json(small());
  const std::string stages = "  \"pp\": 4,\n  \"vpp\": 2,\n";
  const std::size_t at = text.find(stages);
  ASSERT_NE(at, std::string::npos);
  const Result<Manifest> read = parse_manifest(with_checksum(text.erase(at, stages.size())), "m");
  ASSERT_TRUE(read) << to_string(read.problems());
  EXPECT_EQ(read->pp, 1);
  EXPECT_EQ(read->vpp, 1);
  EXPECT_EQ(read->tensors, small().tensors);
}

// The text with eight zeros in the checksum's place has this CRC-32 by Python's zlib.crc32.
TEST(Manifest, HasTheChecksumOfItsText) {
  std::string text = to_json(small());
  EXPECT_THAT(text, HasSubstr("\n  \"crc32\": \"38b5cd16\",\n"));
  EXPECT_TRUE(parse_manifest(text, "m"));
  text.replace(text.find("\"step\": 20"), 10, "\"step\": 21");
  const Result<Manifest> altered = parse_manifest(text, "m");
  ASSERT_FALSE(altered);
  EXPECT_THAT(to_string(altered.problems()), HasSubstr("m: /crc32: is not the checksum"));
}

TEST(Manifest, RefusesSlicesThatDoNotCoverEveryTensorOnce) {
  const auto said = [](const Manifest& manifest) {
    const Result<Manifest> read = parse_manifest(to_json(manifest), "m");
    return read ? std::string() : to_string(read.problems());
  };
  Manifest gap = small();
  gap.files[1].slices[0].begin = 5;
  EXPECT_THAT(said(gap), HasSubstr("/tensors/w: is not whole: element 4 of 6"));
  Manifest twice = small();
  twice.files[0].slices[0].count = 5;
  EXPECT_THAT(said(twice), HasSubstr("/tensors/w: is not whole: element 5 of 6"));
  Manifest lacking = small();
  lacking.files[1].slices.pop_back();
  EXPECT_THAT(said(lacking), HasSubstr("/tensors/b: is not whole: element 0 of 3"));
  Manifest unknown = small();
  unknown.files[1].slices.push_back({"c", 0, 1, {}});
  EXPECT_THAT(said(unknown), HasSubstr("/tensors/c: is in a file, and no tensor"));
  Manifest outside = small();
  outside.files[0].name = "../rank-00000.safetensors";
  EXPECT_THAT(said(outside), HasSubstr("/files/0/name: is not a file beside the manifest"));
}

}  // namespace
}  // namespace shardwise::exec
