#include "tests/executor/checkpoint/lost_power.h"

#include <algorithm>
#include <fstream>
#include <set>

namespace shardwise::exec::test {
namespace {

using Kind = FileOperation::Kind;

void write_bytes(std::string& file, std::size_t at, const std::string& bytes) {
  file.resize(std::max(file.size(), at + bytes.size()), '\0');
  file.replace(at, bytes.size(), bytes);
}

void apply(const FileOperation& operation, Fate fate, Disk& disk) {
  std::string bytes = operation.bytes;
  if (fate == Fate::lost || (fate != Fate::done && operation.kind != Kind::write)) return;
  if (fate == Fate::half) bytes.resize(bytes.size() / 2);
  if (fate == Fate::zeros) bytes.assign(bytes.size(), '\0');
  switch (operation.kind) {
    case Kind::names:
      for (const auto& [name, file] : operation.names) {
        disk.folders[operation.file].erase(name);
        if (file != kNothing) disk.folders[operation.file][name] = file;
      }
      return;
    case Kind::write:
      return write_bytes(disk.files[operation.file], operation.at, bytes);
    case Kind::truncate:
      disk.files[operation.file].clear();
      return;
    case Kind::keep:
      return;
  }
}

}  // namespace

void Disk::write(const std::filesystem::path& to, int folder) const {
  const auto found = folders.find(folder);
  if (found == folders.end()) return;
  for (const auto& entry : found->second) {
    const std::filesystem::path path = to / entry.first;
    if (folders.contains(entry.second)) {
      std::filesystem::create_directory(path);
      write(path, entry.second);
    } else {
      const auto file = files.find(entry.second);
      std::ofstream(path, std::ios::binary) << (file != files.end() ? file->second : "");
    }
  }
}

std::vector<std::size_t> not_kept(std::span<const FileOperation> done) {
  std::set<int> kept;
  std::vector<std::size_t> found;
  for (std::size_t i = done.size(); i-- > 0;) {
    if (done[i].kind == Kind::keep) {
      kept.insert(done[i].file);
    } else if (!kept.contains(done[i].file)) {
      found.push_back(i);
    }
  }
  return found;
}

Disk disk_after(std::span<const FileOperation> done, const std::map<std::size_t, Fate>& fates) {
  Disk disk;
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i].kind == Kind::names) disk.folders[done[i].file];  // a folder, whatever is in it
    const auto fate = fates.find(i);
    apply(done[i], fate == fates.end() ? Fate::done : fate->second, disk);
  }
  return disk;
}

}  // namespace shardwise::exec::test
