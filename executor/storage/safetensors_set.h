#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/storage/safetensors_file.h"
#include "executor/storage/safetensors_writer.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

// A model as Hugging Face stores it: one file `model.safetensors`, or several files
// `model-00001-of-00003.safetensors` and `model.safetensors.index.json`, whose `weight_map` has the
// file of every tensor. Source: huggingface.co/docs/transformers, Big models, sharded checkpoints.

/// The tensors of one file or of several with an index, open for reading.
class SafetensorsSet {
 public:
  /// A tensor and the number of its file.
  struct Place {
    std::size_t file = 0;
    const StoredTensor* tensor = nullptr;
  };

  /// \param path  a .safetensors file, an index (.json), or a folder with either
  /// \returns what is wrong: with a file, a tensor that the index has elsewhere, one that it lacks
  static Result<SafetensorsSet> open(const std::filesystem::path& path);

  /// nullptr when there is no such tensor.
  const Place* find(const std::string& tensor) const;
  std::size_t size() const { return places_.size(); }
  const std::vector<SafetensorsFile>& files() const { return files_; }
  /// Fills `to` with a tensor's bytes, from its byte `at` on. \throws IoError
  void read(const Place& place, std::int64_t at, std::span<std::byte> to) const {
    files_[place.file].read(*place.tensor, at, to);
  }

 private:
  std::vector<SafetensorsFile> files_;
  std::unordered_map<std::string, Place> places_;
};

/// Writes the tensors of a model in as few files as the limit allows, and the index where that is
/// more than one. The index, and with it the model, appears last. All functions throw IoError.
class SafetensorsSetWriter {
 public:
  /// \param most_bytes  of tensors in a file; a larger tensor has a file of its own
  SafetensorsSetWriter(std::filesystem::path folder, std::vector<TensorSpec> tensors,
                       std::int64_t most_bytes, StoredMetadata metadata);

  /// The next bytes of the tensors, in pieces of any size.
  void write(std::span<const std::byte> bytes);
  /// \pre every byte of every tensor was written
  void finish();

 private:
  /// Tensors [begin, end) and how many of their bytes are still to come.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int64_t left = 0;
  };

  std::string file_name(std::size_t part) const;
  void open_part();
  void close_part();
  void write_index() const;

  std::filesystem::path folder_;
  std::vector<TensorSpec> tensors_;
  StoredMetadata metadata_;
  std::vector<Part> parts_;
  std::size_t part_ = 0;
  std::unique_ptr<SafetensorsWriter> writer_;
};

}  // namespace shardwise::exec
