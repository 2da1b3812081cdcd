#include "executor/launch/job_secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {
namespace {

constexpr const char* kSecret = "SHARDWISE_SECRET";
constexpr const char* kSecretFile = "SHARDWISE_SECRET_FILE";
constexpr const char* kInsecure = "SHARDWISE_INSECURE";
constexpr std::size_t kLeast = 16;
constexpr std::size_t kMost = 4096;
constexpr const char* kMake = "32 random bytes in hexadecimal, as openssl rand -hex 32 prints";

/// The text of the file without the end of its line; empty after a problem.
std::string read_secret_file(LauncherVariables& from, const std::string& path) {
  const auto refuse = [&](const std::string& what, const char* hint) {
    from.refuse(kSecretFile, fmt::format("{}: {}", path, what), hint);
    return std::string();
  };
  // A pipe would keep this process waiting.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file.is_open() || ::fstat(file.number(), &about) != 0)
    return refuse(std::strerror(errno), "");
  if (!S_ISREG(about.st_mode)) return refuse("is not a regular file", "");
  if (about.st_uid != ::geteuid() && about.st_uid != 0) {
    return refuse("belongs to another user", "a file of this user's");
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refuse(
        fmt::format("has mode {:04o}: others may read or write it", about.st_mode & 07777),
        "chmod 600");
  }
  std::array<char, kMost + 1> bytes{};
  const ssize_t count = ::read(file.number(), bytes.data(), bytes.size());
  if (count < 0) return refuse(std::strerror(errno), "");
  std::string text(bytes.data(), static_cast<std::size_t>(count));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.size() >= kLeast && text.size() <= kMost) return text;
  return refuse(fmt::format("its secret is not {} to {} bytes long", kLeast, kMost), kMake);
}

std::string read_secret(LauncherVariables& from) {
  if (from.is_set(kSecret) && from.is_set(kSecretFile)) {
    from.refuse(kSecretFile, fmt::format("is set, and {} is too", kSecret), "unset one of them");
  } else if (from.is_set(kSecretFile)) {
    return read_secret_file(from, from.text(kSecretFile));
  } else if (from.is_set(kSecret)) {
    const std::string secret = from.text(kSecret);
    if (secret.size() >= kLeast && secret.size() <= kMost) return secret;
    from.refuse(kSecret,
                fmt::format("has {} characters, not {} to {}", secret.size(), kLeast, kMost),
                kMake);
  }
  return "";
}

}  // namespace

Diagnostics find_secret(LauncherVariables& from, Launcher& launcher) {
  const std::string secret = read_secret(from);
  from.number(kInsecure, 1, 1);
  if (!launcher.rendezvous || !from.problems().empty()) return from.problems();
  Rendezvous& at = *launcher.rendezvous;
  at.secret = secret;
  if (secret.empty() && !at.this_host_only && !from.is_set(kInsecure)) {
    from.refuse(kSecret, fmt::format("is not set, and ranks connect to {} over a network", at.host),
                fmt::format("set it on all ranks, or {}, to {}; or set {}=1 where anything that "
                            "reaches this network may join the job",
                            kSecretFile, kMake, kInsecure));
  }
  return from.problems();
}

}  // namespace shardwise::exec
