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

// Of versions that had neither pipelines nor tensor parallelism.
TEST(Manifest, IsReadWithoutStages) {
  std::string text = to_json(small());
  const std::string stages = "  \"tp\": 1,\n  \"pp\": 4,\n  \"vpp\": 2,\n";
  const std::size_t at = text.find(stages);
  ASSERT_NE(at, std::string::npos);
  const Result<Manifest> read = parse_manifest(with_checksum(text.erase(at, stages.size())), "m");
  ASSERT_TRUE(read) << to_string(read.problems());
  EXPECT_EQ(read->tp, 1);
  EXPECT_EQ(read->pp, 1);
  EXPECT_EQ(read->vpp, 1);
  EXPECT_EQ(read->tensors, small().tensors);
}

/// Of two ranks of tensor parallelism: columns of two matrices stored as one, rows of a table of
/// three whose second part is short, and a bias that the first rank has whole.
Manifest in_parts() {
  Manifest manifest = small();
  manifest.tp = 2;
  manifest.tensors = {{"joined", {3, 6}, cut_along({3, 6}, 1, 2, {2, 4})},
                      {"table", {3, 2}, cut_along({3, 2}, 0, 2, {4})},
                      {"b", {3}}};
  manifest.files = {
      {"rank-00000.safetensors",
       500,
       7,
       {{"joined", 0, 9, {1, 2, 3}, 0}, {"table", 0, 4, {}, 0}, {"b", 0, 3, {}}}},
      {"rank-00001.safetensors", 600, 8, {{"joined", 0, 9, {}, 1}, {"table", 0, 2, {}, 1}}}};
  return manifest;
}

TEST(Manifest, SaysTheSameOfPartsWhenItIsReadAgain) {
  const std::string text = to_json(in_parts());
  const Result<Manifest> read = parse_manifest(text, "manifest.json");
  ASSERT_TRUE(read) << to_string(read.problems());
  EXPECT_EQ(to_json(*read), text);
  EXPECT_EQ(read->tp, 2);
  EXPECT_EQ(read->tensors, in_parts().tensors);
  EXPECT_EQ(read->files[1].slices[0].part, 1);
  EXPECT_THAT(text, HasSubstr("\"joined\": [1, 2, 2, 4]"));
  EXPECT_THAT(text, HasSubstr("\"joined\": [0, 0, 9, 1, 2, 3]"));
}

std::string said_of(const std::string& text) {
  const Result<Manifest> read = parse_manifest(with_checksum(text), "m");
  return read ? std::string() : to_string(read.problems());
}

TEST(Manifest, RefusesPartsThatDoNotCoverEveryTensorOnce) {
  const auto said = [](const auto& change) {
    Manifest manifest = in_parts();
    change(manifest);
    return said_of(to_json(manifest));
  };
  EXPECT_THAT(said([](Manifest& m) { m.files[1].slices[0].begin = 1; }),
              HasSubstr("/tensors/joined: is not whole: element 0 of 9 of part 1 is not once"));
  EXPECT_THAT(said([](Manifest& m) { m.files[1].slices[0].part = 0; }),
              HasSubstr("/tensors/joined: is not whole: element 0 of 9 of part 1 is not once"));
  EXPECT_THAT(said([](Manifest& m) { m.files[1].slices[0].part = 7; }),
              HasSubstr("/tensors/joined: is not whole: element 0 of 9 of part 1 is not once"));
  EXPECT_THAT(said([](Manifest& m) { m.files[1].slices[0].part = kWholeTensor; }),
              HasSubstr("/tensors/joined: is not whole: element 0 of 9 of part 0 is not once"));
  // Zeros behind the rows of a table are nobody's.
  EXPECT_THAT(said([](Manifest& m) { m.files[1].slices[1].count = 4; }),
              HasSubstr("/tensors/table: is not whole: element 4 of 2 of part 1 is not once"));
  EXPECT_THAT(said([](Manifest& m) {
                m.files[1].slices.push_back({"b", 3, 1, {}});
              }),
              HasSubstr("/tensors/b: is not whole: element 4 of 3 is not once"));
  EXPECT_THAT(said([](Manifest& m) { m.files[0].slices[2].part = 0; }),
              HasSubstr("/tensors/b: is not whole: element 0 of 3 is not once"));
  EXPECT_THAT(said([](Manifest& m) {
                m.files[1].slices.push_back({"b", 5, 1, {}, 3});
              }),
              HasSubstr("/tensors/b: is not whole: elements from 5 on of part 3 are not once"));
}

// A manifest is whatever somebody wrote, its checksum too.
TEST(Manifest, RefusesCutsThatDoNotFitTheirTensors) {
  const auto said = [](const std::string& row) {
    std::string text = to_json(in_parts());
    const std::string was = "\"joined\": [1, 2, 2, 4]";
    return said_of(text.replace(text.find(was), was.size(), row));
  };
  EXPECT_THAT(said("\"other\": [1, 2, 2, 4]"),
              HasSubstr("/cuts/other: is no tensor of the manifest"));
  const auto cut = [&](const std::string& row) { return said("\"joined\": " + row); };
  EXPECT_THAT(cut("[]"), HasSubstr("/cuts/joined: is not dimension, parts and 1 to 8 pieces"));
  EXPECT_THAT(cut("[1, 2]"), HasSubstr("/cuts/joined: is not dimension, parts and"));
  EXPECT_THAT(cut("[1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]"), HasSubstr("/cuts/joined: is not dim"));
  EXPECT_THAT(cut("[1, -2, 6]"), HasSubstr("/cuts/joined: is no list of whole numbers"));
  EXPECT_THAT(cut("[2, 2, 6]"), HasSubstr("/cuts/joined: cuts dimension 2 of 2"));
  EXPECT_THAT(cut("[1, 0, 6]"), HasSubstr("/cuts/joined: has 0 parts, and a cut has 2 or more"));
  EXPECT_THAT(cut("[1, 1, 6]"), HasSubstr("/cuts/joined: has 1 part, and a cut has 2 or more"));
  EXPECT_THAT(cut("[1, 2, 6, 0]"), HasSubstr("/cuts/joined: has 0 steps of a piece for 2 parts"));
  EXPECT_THAT(cut("[1, 4, 6]"), HasSubstr("/cuts/joined: has 6 steps of a piece for 4 parts"));
  EXPECT_THAT(cut("[1, 2, 4]"), HasSubstr("/cuts/joined: has 4 steps along a dimension of 6"));
  // Zeros are behind a table's rows alone.
  EXPECT_THAT(cut("[1, 2, 8]"), HasSubstr("/cuts/joined: has 8 steps along a dimension of 6"));
  EXPECT_THAT(cut("[0, 2, 2, 2]"), HasSubstr("/cuts/joined: has 4 steps along a dimension of 3"));
  EXPECT_THAT(cut("[0, 2, 1152921504606846976, 1152921504606846976]"),
              HasSubstr("/cuts/joined: has more elements than can be counted"));
  // So many parts that nobody could visit them all.
  EXPECT_THAT(cut("[0, 576460752303423488, 576460752303423488]"),
              HasSubstr("/tensors/joined: is not whole: element 9 of 6 of part 0"));
}

// The text with eight zeros in the checksum's place has this CRC-32 by Python's zlib.crc32.
TEST(Manifest, HasTheChecksumOfItsText) {
  std::string text = to_json(small());
  EXPECT_THAT(text, HasSubstr("\n  \"crc32\": \"74448763\",\n"));
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
