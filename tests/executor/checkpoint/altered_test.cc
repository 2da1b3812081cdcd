#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/saved_checkpoint.h"
#include "executor/storage/safetensors_writer.h"
#include "tests/executor/checkpoint/checkpoint_run.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

/// A checkpoint of two ranks, and a way to spoil it.
class AlteredCheckpoint : public testing::Test {
 protected:
  AlteredCheckpoint() {
    train_from(laptop_plan("shardwise", layout_of(3, 2), 1, false), scratch_.folder(), 0, 1);
  }
  std::string file(const std::string& name) const { return "step-00000001/" + name; }
  std::string bytes(const std::string& name) const {
    return bytes_of_file(scratch_.path(file(name)));
  }
  void put(const std::string& name, const std::string& bytes) const {
    scratch_.write_bytes(file(name), bytes);
  }
  /// What is wrong with it; empty when nothing is.
  std::string problems() const {
    const Result<SavedCheckpoint> saved =
        SavedCheckpoint::open(scratch_.folder() / complete_name(1));
    if (!saved) return to_string(saved.problems());
    const Diagnostics altered = saved->altered(0, 1);
    return altered.empty() ? "" : to_string(altered);
  }

  Scratch scratch_{shardwise::test::memory_folder()};
};

TEST_F(AlteredCheckpoint, IsRefusedWhereverABitIsFlipped) {
  ASSERT_EQ(problems(), "");
  std::mt19937 random(7);
  for (const std::string name : {"manifest.json", "rank-00000.safetensors"}) {
    const std::string good = bytes(name);
    std::size_t header = 8;
    for (std::size_t i = 0; i < 8; ++i) {
      header += static_cast<std::size_t>(static_cast<unsigned char>(good[i])) << (8 * i);
    }
    for (int trial = 0; trial < 60; ++trial) {
      // Of a file of tensors a third each: length, header, data.
      const std::size_t from = name == "manifest.json" || trial % 3 == 0 ? 0
                               : trial % 3 == 1                          ? 8
                                                                         : header;
      const std::size_t to = name == "manifest.json" ? good.size()
                             : trial % 3 == 0        ? 8
                             : trial % 3 == 1        ? header
                                                     : good.size();
      const std::size_t at = from + random() % (to - from);
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (random() % 8)));
      put(name, flipped);
      const std::string said = problems();
      ASSERT_THAT(said, HasSubstr(name)) << "byte " << at;
      if (name != "manifest.json" && from == header) {
        ASSERT_THAT(said, AnyOf(HasSubstr(": /weights/"), HasSubstr(": /first_moment/"),
                                HasSubstr(": /second_moment/")))
            << "byte " << at;
        ASSERT_THAT(said, HasSubstr("was altered: its checksum differs"));
      }
    }
    put(name, good);
  }
  EXPECT_EQ(problems(), "");
}

TEST_F(AlteredCheckpoint, IsRefusedWhenAFileIsTruncatedOrMissing) {
  const std::string good = bytes("rank-00001.safetensors");
  put("rank-00001.safetensors", good.substr(0, good.size() - 1));
  EXPECT_THAT(problems(), HasSubstr("of the data, the file has"));
  EXPECT_THAT(problems(), HasSubstr("/second_moment"));
  std::filesystem::remove(scratch_.path(file("rank-00001.safetensors")));
  EXPECT_THAT(problems(),
              AllOf(HasSubstr("rank-00001.safetensors: no such file\n    it has parts of "),
                    HasSubstr(".weight, "), HasSubstr("; take another checkpoint")));
  put("rank-00001.safetensors", good);
  const std::string manifest = bytes("manifest.json");
  put("manifest.json", manifest.substr(0, manifest.size() / 2));
  EXPECT_THAT(problems(), HasSubstr("the manifest is truncated or was altered"));
  std::filesystem::remove(scratch_.path(file("manifest.json")));
  EXPECT_THAT(problems(), HasSubstr("manifest.json: no such file"));
}

// A whole file of others' tensors, which no checksum of its own betrays.
TEST_F(AlteredCheckpoint, NamesTensorsThatAreMissingExtraOrOfAnotherShape) {
  const Result<SafetensorsFile> own =
      SafetensorsFile::open(scratch_.path(file("rank-00000.safetensors")));
  ASSERT_TRUE(own) << to_string(own.problems());
  std::vector<TensorSpec> specs;
  for (const StoredTensor& tensor : own->tensors()) specs.push_back(tensor.spec);
  const std::string missing = specs[0].name;
  specs[0].name = "weights/other";
  specs[1].shape = {specs[1].shape.front(), 1};
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += spec.bytes();
  SafetensorsWriter writer(scratch_.path(file("rank-00000.safetensors")), specs);
  writer.write(std::vector<std::byte>(static_cast<std::size_t>(bytes)));
  writer.finish();
  const std::string said = problems();
  EXPECT_THAT(said, HasSubstr("/" + missing + ": is missing, the manifest has it here"));
  EXPECT_THAT(said, HasSubstr("/weights/other: is extra, the manifest does not list it"));
  EXPECT_THAT(said, HasSubstr("/" + specs[1].name + ": is not what the manifest has"));
}

TEST_F(AlteredCheckpoint, IsRefusedByAPlanOfAnotherModel) {
  const Result<SavedCheckpoint> saved = SavedCheckpoint::open(scratch_.folder() / complete_name(1));
  ASSERT_TRUE(saved) << to_string(saved.problems());
  std::vector<SavedTensor> tensors = saved->manifest().tensors;
  EXPECT_TRUE(saved->differences(tensors).empty());
  const std::string extra = tensors.front().name;
  tensors.front().name = "model.other.weight";
  tensors.back().shape.push_back(2);
  const std::string said = to_string(saved->differences(tensors));
  EXPECT_THAT(said, HasSubstr("manifest.json: /tensors/model.other.weight: is missing"));
  EXPECT_THAT(said, HasSubstr("/tensors/" + extra + ": is extra"));
  EXPECT_THAT(said, HasSubstr("/tensors/" + tensors.back().name + ": has shape ["));
}

}  // namespace
}  // namespace shardwise::exec::test
