#include "tests/support/host_cuda/fake_nccl_folder.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "tests/support/host_cuda/fake_nccl.h"

namespace fake_nccl {
namespace {

using Posted = std::vector<std::byte>;

std::filesystem::path& meeting_folder() {
  static std::filesystem::path folder;
  return folder;
}

/// Ranks that differ in what they issue are complained of here, where all of it is known.
std::string header_of(const Shape& shape) { return text_of(shape) + "\n"; }

bool all_posted(const std::string& at, const Operation& operation) {
  return count_posted(at, static_cast<int>(operation.ranks.size())) == std::ssize(operation.ranks);
}

/// What every rank sent, behind its header. \returns false where one issued something else
bool read_sent(const std::string& name, const std::string& at, Operation& operation,
               std::vector<Posted>& sent) {
  const std::string header = header_of(operation.shape);
  for (std::size_t r = 0; r < operation.ranks.size(); ++r) {
    sent.push_back(posted(at, static_cast<int>(r)));
    const Posted& each = sent.back();
    const std::string said(reinterpret_cast<const char*>(each.data()), each.size());
    if (!said.starts_with(header)) {
      fake_cuda::complain(name + ": rank " + std::to_string(r) + " issues " +
                          said.substr(0, said.find('\n')));
      operation.broken = true;
      return false;
    }
    operation.sent[r] = each.data() + header.size();
  }
  return true;
}

}  // namespace

void meet_in(const std::string& folder) {
  meeting_folder() = folder;
  fake_cuda::Streams::all().beside_others = !folder.empty();
}

bool are_processes() { return !meeting_folder().empty(); }

std::string own_name(const std::string& name, int rank) {
  return name + "." + std::to_string(rank);
}

void post(const std::string& name, std::span<const std::byte> bytes) {
  const std::filesystem::path file = meeting_folder() / name;
  const std::filesystem::path begun = file.string() + ".begun";
  std::ofstream(begun, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  std::filesystem::rename(begun, file);
}

int count_posted(const std::string& name, int size) {
  int count = 0;
  for (int rank = 0; rank < size; ++rank) {
    std::error_code none;
    if (std::filesystem::exists(meeting_folder() / own_name(name, rank), none)) ++count;
  }
  return count;
}

std::vector<std::byte> posted(const std::string& name, int rank) {
  std::ifstream file(meeting_folder() / own_name(name, rank), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

std::vector<fake_cuda::Work> works_of_process(
    const std::string& name, const Clique& clique, std::int64_t number, int rank,
    const std::shared_ptr<Operation>& operation, const std::shared_ptr<bool>& aborted,
    const std::function<void(const Operation&, std::vector<std::byte>&)>& take, void* to,
    std::size_t sent_bytes) {
  const std::string at = clique.key + "." + std::to_string(number);
  const auto received = std::make_shared<Posted>();
  const auto send = [=] {
    Posted bytes(header_of(operation->shape).size() + sent_bytes);
    const std::string header = header_of(operation->shape);
    std::memcpy(bytes.data(), header.data(), header.size());
    std::memcpy(bytes.data() + header.size(), operation->sent[static_cast<std::size_t>(rank)],
                sent_bytes);
    post(own_name(at, rank), bytes);
  };
  const auto read = [=] {
    if (*aborted || operation->gone) return;
    std::vector<Posted> sent;
    if (read_sent(name, at, *operation, sent)) take(*operation, *received);
  };
  const auto write = [=] {
    if (!received->empty()) std::memcpy(to, received->data(), received->size());
  };
  const auto ready = [=] { return *aborted || operation->gone || all_posted(at, *operation); };
  return {{name, {}, {}, send}, {name, ready, "other ranks", read}, {name, {}, {}, write}};
}

}  // namespace fake_nccl
