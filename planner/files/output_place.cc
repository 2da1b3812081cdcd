#include "planner/files/output_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "planner/files/trusted_file.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

int reserved_output = -1;

/// The open descriptor that a path names, or nothing.
std::optional<int> descriptor_of(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::optional<std::int64_t> number =
        parse_integer(std::string_view(path).substr(folder.size()));
    if (number && *number >= 0 && *number < 1 << 20) return static_cast<int>(*number);
  }
  return std::nullopt;
}

using Inode = std::pair<dev_t, ino_t>;

std::optional<Inode> inode_of(const fs::path& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return Inode{facts.st_dev, facts.st_ino};
}

/// A name that is free, however it is spelt: the innermost folder around it that is there, and the
/// way from that folder on.
std::string free_name(const fs::path& path) {
  fs::path folder = fs::absolute(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // "new/" is "new"
  fs::path rest = folder.filename();
  for (folder = folder.parent_path();; folder = folder.parent_path()) {
    const std::optional<Inode> inode = inode_of(folder);
    const fs::path way = rest.lexically_normal();
    if (inode) return fmt::format("{}:{}/{}", inode->first, inode->second, way.string());
    if (folder == folder.parent_path()) return way.string();
    rest = folder.filename() / rest;
  }
}

/// Whose an entry of a folder is that he may have put there as a trap; empty: nobody's.
std::string planter_of(const fs::path& entry, const struct stat& facts) {
  struct stat around = {};
  const fs::path folder = entry.parent_path();
  if (facts.st_uid == ::geteuid() || facts.st_uid == 0) return "";
  if (::stat(folder.empty() ? "." : folder.c_str(), &around) != 0) return "";
  const bool anybody = (around.st_mode & S_ISVTX) != 0 && (around.st_mode & S_IWOTH) != 0;
  return anybody && around.st_uid != facts.st_uid ? user_name(facts.st_uid) : "";
}

/// The same of links among the folders around an entry.
std::string planter_of_links(const fs::path& entry) {
  for (fs::path at = entry.parent_path(); at.has_relative_path(); at = at.parent_path()) {
    struct stat facts = {};
    if (::lstat(at.c_str(), &facts) != 0 || !S_ISLNK(facts.st_mode)) continue;
    if (std::string planter = planter_of(at, facts); !planter.empty()) return planter;
  }
  return "";
}

/// What tells whether two names are one file.
struct Identity {
  std::optional<Inode> inode;
  std::string name;  // of a descriptor, or of a file that is not there yet
  bool is(const Identity& other) const {
    const bool one_inode = inode && other.inode && *inode == *other.inode;
    return one_inode || (!name.empty() && name == other.name);
  }
};

Identity identity_of(const OutputPlace& place) {
  Identity identity;
  struct stat facts = {};
  const bool open = place.kind == OutputPlace::Kind::descriptor;
  if (open) identity.name = fmt::format("descriptor {}", place.descriptor);
  const int status = open ? ::fstat(place.descriptor, &facts) : ::stat(place.path.c_str(), &facts);
  if (status == 0) {
    if (!S_ISCHR(facts.st_mode)) identity.inode = {facts.st_dev, facts.st_ino};
  } else if (!open) {
    identity.name = free_name(place.path);
  }
  return identity;
}

/// An identity, and for messages the name.
struct Known {
  NamedFile file;
  Identity identity;
};

Known know(const NamedFile& file) { return {file, identity_of(find_output(file.path))}; }

/// Whether links go round in a circle: no file, so nothing of it can be written over.
bool in_circle(const std::string& path) {
  struct stat facts = {};
  return ::stat(path.c_str(), &facts) != 0 && errno == ELOOP;
}

Diagnostic clash(const NamedFile& file, const std::string& other) {
  return {"command line",
          0,
          0,
          file.flag,
          fmt::format("{} is the same file as {}", file.path, other),
          "give another file"};
}

}  // namespace

bool is_inside(const std::string& path, const std::string& folder) {
  const OutputPlace place = find_output(path);
  if (place.kind == OutputPlace::Kind::descriptor) return false;
  const Identity around = identity_of(find_output(folder));
  // Folders above one that is not there yet are compared by the name it will have.
  fs::path at = fs::weakly_canonical(fs::absolute(place.path));
  if (!at.has_filename()) at = at.parent_path();
  for (; at != at.parent_path(); at = at.parent_path()) {
    if (identity_of(find_output(at.string())).is(around)) return true;
  }
  return false;
}

std::string OutputPlace::refusal() const {
  if (planted_by.empty()) return "";
  return fmt::format("belongs to {}, in a folder that anybody may write", planted_by);
}

OutputPlace find_output(const std::string& path) {
  fs::path at(path);
  OutputPlace place;
  for (int links = 0; links < kMostLinks; ++links) {
    place.path = at.string();
    if (const std::optional<int> descriptor = descriptor_of(place.path)) {
      place.kind = OutputPlace::Kind::descriptor;
      place.descriptor = *descriptor;
      place.exists = true;
      return place;
    }
    if (place.planted_by.empty()) place.planted_by = planter_of_links(at);
    struct stat facts = {};
    if (::lstat(place.path.c_str(), &facts) != 0) return place;
    if (place.planted_by.empty()) place.planted_by = planter_of(at, facts);
    if (S_ISLNK(facts.st_mode)) {
      std::error_code error;
      const fs::path to = fs::read_symlink(at, error);
      if (error) throw IoError(fmt::format("{}: cannot be read: {}", path, error.message()));
      at = at.parent_path() / to;  // an absolute one stands for itself
      continue;
    }
    place.exists = true;
    if (S_ISDIR(facts.st_mode)) {
      place.kind = OutputPlace::Kind::folder;
    } else if (!S_ISREG(facts.st_mode)) {
      place.kind = OutputPlace::Kind::stream;
    }
    return place;
  }
  throw IoError(fmt::format("{}: cannot be written: {}", path, std::strerror(ELOOP)));
}

Diagnostics check_outputs(const std::vector<NamedFile>& outputs,
                          const std::vector<NamedFile>& inputs) {
  Diagnostics problems;
  std::vector<Known> known;
  for (const NamedFile& input : inputs) {
    const bool given = !input.path.empty() && input.path != "-";
    if (given && !in_circle(input.path)) known.push_back(know(input));
  }
  const std::size_t known_inputs = known.size();
  for (const NamedFile& output : outputs) {
    if (output.path.empty()) continue;
    const std::string refusal = find_output(output.path).refusal();
    if (!refusal.empty()) {
      problems.push_back({"command line", 0, 0, output.flag, output.path + " " + refusal,
                          "name another file, or remove it first"});
    }
    const Known mine = know(output);
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (!mine.identity.is(known[i].identity)) continue;
      const std::string& flag = known[i].file.flag;
      problems.push_back(clash(output, i < known_inputs ? "the input " + flag : flag));
      break;
    }
    known.push_back(mine);
  }
  // What the program prints would run into a file that is written at the same time.
  struct stat printed = {};
  if (::fstat(STDOUT_FILENO, &printed) != 0 || !S_ISREG(printed.st_mode)) return problems;
  for (std::size_t i = known_inputs; i < known.size(); ++i) {
    const bool same = known[i].identity.inode == std::pair(printed.st_dev, printed.st_ino);
    if (same && known[i].identity.name.empty()) {
      problems.push_back(clash(known[i].file, "standard output"));
    }
  }
  return problems;
}

void reserve_standard_output(const std::vector<NamedFile>& outputs) {
  for (const NamedFile& output : outputs) {
    if (output.path.empty() || find_output(output.path).descriptor != STDOUT_FILENO) continue;
    if (reserved_output >= 0) return;
    std::fflush(stdout);
    reserved_output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (reserved_output < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
      throw IoError(fmt::format("standard output: {}", std::strerror(errno)));
    }
  }
}

int standard_output() { return reserved_output >= 0 ? reserved_output : STDOUT_FILENO; }

}  // namespace shardwise
